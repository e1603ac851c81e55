#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <dunlin/limits.hpp>

/// A ring of small messages from one sender to one receiver, in shared memory.
///
/// A record is a word (length, channel in the upper half) and the message, padded to whole words;
/// positions count bytes since the beginning and never wrap.
///  SHM-R1  The sender writes records and `head`; the receiver writes `tail`. Each side trusts only
///      its own copy of the words that it writes, and checks those that it reads.
///  SHM-R2  head - tail <= kMessageRingBytes: a record is overwritten only after its release.
///  SHM-R3  The store of `head` (release) comes after the record; the receiver's load of `head`
///      (acquire) before it reads the record. The store of `tail` (release) comes after the record
///      was copied out; the sender's load of `tail` (acquire) before it overwrites it.
namespace dunlin::shm {

struct MessageRing {
  alignas(kCacheLineBytes) std::uint64_t head;
  alignas(kCacheLineBytes) std::uint64_t tail;
  alignas(kCacheLineBytes) std::array<std::byte, kMessageRingBytes> bytes;
};
static_assert(sizeof(MessageRing) == 2 * kCacheLineBytes + kMessageRingBytes);

struct Message {
  std::uint32_t channel = 0;
  std::uint32_t bytes = 0;
  alignas(kWordBytes) std::array<std::byte, kMaxMessageBytes> content;
};

class MessageSender {
 public:
  /// Appends a message; false if the ring has no room. Requires message.size() <= kMaxMessageBytes.
  [[nodiscard]] bool push(MessageRing& ring, std::uint32_t channel,
                          std::span<const std::byte> message) noexcept;

 private:
  std::uint64_t head_ = 0;
  std::uint64_t tail_seen_ = 0;
};

class MessageReceiver {
 public:
  enum class Found { nothing, message, garbage };
  /// Copies the oldest message out; it stays in the ring until drop().
  [[nodiscard]] Found peek(const MessageRing& ring, Message& message) noexcept;
  [[nodiscard]] std::uint64_t position() const noexcept { return tail_; }
  /// Releases the message that the last peek() found.
  void drop(MessageRing& ring) noexcept;

 private:
  std::uint64_t tail_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace dunlin::shm
