#include "fabric/stream/inbox.hpp"

#include <cstring>

namespace dunlin::stream {

bool Inbox::push(std::uint32_t channel, std::span<const std::byte> message) {
  const std::size_t bytes = record_bytes(message.size());
  if (end_ - begin_ + bytes > kWindowBytes) return false;
  records_.resize(2 * kWindowBytes);
  if (end_ + bytes > records_.size()) {
    std::memmove(records_.data(), records_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto length = static_cast<std::uint32_t>(message.size());
  std::byte* const record = records_.data() + end_;
  std::memcpy(record, &channel, 4);
  std::memcpy(record + 4, &length, 4);
  if (length != 0) std::memcpy(record + kWordBytes, message.data(), length);
  end_ += bytes;
  ++pushed_;
  return true;
}

void Inbox::peek(Message& message) const noexcept {
  const std::byte* const record = records_.data() + begin_;
  std::memcpy(&message.channel, record, 4);
  std::memcpy(&message.bytes, record + 4, 4);
  std::memcpy(message.content.data(), record + kWordBytes, message.bytes);
}

void Inbox::pop() noexcept {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, records_.data() + begin_ + 4, 4);
  begin_ += record_bytes(bytes);
  ++popped_;
  if (begin_ == end_) begin_ = end_ = 0;
}

}  // namespace dunlin::stream
