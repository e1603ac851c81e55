#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dunlin/limits.hpp>

/// Messages of one sender that wait for their handler, in order, in a bounded amount of memory. The
/// sender knows the bound and keeps to it: kWindowBytes of records that are not handled yet.
namespace dunlin::stream {

class Inbox {
 public:
  static constexpr std::size_t kWindowBytes = 65'536;

  struct Message {
    std::uint32_t channel = 0;
    std::uint32_t bytes = 0;
    alignas(kWordBytes) std::array<std::byte, kMaxMessageBytes> content;
    [[nodiscard]] std::span<const std::byte> view() const noexcept {
      return std::span(content).first(bytes);
    }
  };

  /// The bytes that a message takes of the window.
  [[nodiscard]] static constexpr std::size_t record_bytes(std::size_t message_bytes) noexcept {
    return kWordBytes + round_up(message_bytes, kWordBytes);
  }

  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  /// Appends a message; false if there is no room for it. Requires message.size() <=
  /// kMaxMessageBytes.
  [[nodiscard]] bool push(std::uint32_t channel, std::span<const std::byte> message);
  /// Copies the oldest message out, because its handler may push. Requires !empty().
  void peek(Message& message) const noexcept;
  void pop() noexcept;
  /// How many messages were ever pushed, and popped.
  [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::uint64_t popped() const noexcept { return popped_; }

 private:
  std::vector<std::byte> records_;  // allocated when the first message has to wait
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t popped_ = 0;
};

static_assert(Inbox::record_bytes(kMaxMessageBytes) * 4 <= Inbox::kWindowBytes);

}  // namespace dunlin::stream
