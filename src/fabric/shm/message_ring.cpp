#include "fabric/shm/message_ring.hpp"

#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t record_bytes(std::uint64_t message_bytes) noexcept {
  return kWordBytes + round_up(message_bytes, kWordBytes);
}

struct Record {
  std::uint64_t label;  // length, and the channel in the upper half
  std::array<std::byte, kMaxMessageBytes> content;
};

std::size_t room_before_end(std::uint64_t position) noexcept {
  return kMessageRingBytes - position % kMessageRingBytes;
}

void copy_in(MessageRing& ring, std::uint64_t position, const void* from,
             std::size_t bytes) noexcept {
  const std::size_t first = std::min(bytes, room_before_end(position));
  const auto* source = static_cast<const std::byte*>(from);
  memory::copy_unwatched(&ring.bytes[position % kMessageRingBytes], source, first);
  memory::copy_unwatched(ring.bytes.data(), source + first, bytes - first);
}

void copy_out(const MessageRing& ring, std::uint64_t position, void* to,
              std::size_t bytes) noexcept {
  const std::size_t first = std::min(bytes, room_before_end(position));
  auto* target = static_cast<std::byte*>(to);
  memory::copy_unwatched(target, &ring.bytes[position % kMessageRingBytes], first);
  memory::copy_unwatched(target + first, ring.bytes.data(), bytes - first);
}

}  // namespace

bool MessageSender::push(MessageRing& ring, std::uint32_t channel,
                         std::span<const std::byte> message) noexcept {
  DUNLIN_ASSERT(message.size() <= kMaxMessageBytes, "SHM-R2: a record fits into the ring");
  const std::uint64_t bytes = record_bytes(message.size());
  if (head_ + bytes - tail_seen_ > kMessageRingBytes) {
    tail_seen_ = memory::load(ring.tail);
    if (head_ + bytes - tail_seen_ > kMessageRingBytes) return false;
  }
  Record record;
  record.label = message.size() | std::uint64_t{channel} << 32;
  if (!message.empty()) std::memcpy(record.content.data(), message.data(), message.size());
  copy_in(ring, head_, &record, kWordBytes + message.size());
  head_ += bytes;
  memory::store(ring.head, head_);
  return true;
}

MessageReceiver::Found MessageReceiver::peek(const MessageRing& ring, Message& message) noexcept {
  const std::uint64_t available = memory::load(ring.head) - tail_;
  if (available == 0) return Found::nothing;
  if (available > kMessageRingBytes || available < kWordBytes) return Found::garbage;
  std::uint64_t label = 0;
  copy_out(ring, tail_, &label, sizeof label);
  message.bytes = static_cast<std::uint32_t>(label);
  message.channel = static_cast<std::uint32_t>(label >> 32);
  if (message.bytes > kMaxMessageBytes || message.channel >= kMaxChannels ||
      record_bytes(message.bytes) > available)
    return Found::garbage;
  copy_out(ring, tail_ + kWordBytes, message.content.data(), message.bytes);
  next_ = tail_ + record_bytes(message.bytes);
  return Found::message;
}

void MessageReceiver::drop(MessageRing& ring) noexcept {
  tail_ = next_;
  memory::store(ring.tail, tail_);
}

}  // namespace dunlin::shm
