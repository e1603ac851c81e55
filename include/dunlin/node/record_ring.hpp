#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

/// A RecordRing carries records of bytes from any threads to one reader, in the order in which the
/// threads claimed them. It is bounded, takes no lock and makes no system call. (The shape is that
/// of Aeron's many-to-one ring buffer.)
///
/// Invariants:
///  NODE-R1  [head, tail) is claimed. All other bytes of the ring are zero.
///  NODE-R2  A record is at most one piece: what does not fit behind it is filled by padding.
///  NODE-R3  The reader sees a record once its header is not zero: `publish()` stores the header
///      with release, and `read()` loads it with acquire.
///  NODE-R4  A writer uses bytes again only behind the head: `read()` clears them, and stores the
///      head with release; `claim()` loads it with acquire.
///  NODE-R5  Once the ring is closed, no record is claimed.
namespace dunlin::node {

class RecordRing {
 public:
  /// `bytes`: a power of two, at least 1,024.
  explicit RecordRing(std::size_t bytes);

  /// The longest record.
  [[nodiscard]] std::size_t longest() const noexcept { return capacity_ / 4; }

  enum class Claim : std::uint8_t { ok, full, too_long, closed };
  // --- any thread --------------------------------------------------------------------------------
  /// Memory for a record of so many bytes, aligned to 16; the thread fills it and calls publish().
  /// Null if there is none; `why` says the reason.
  [[nodiscard]] std::byte* claim(std::size_t bytes, Claim& why) noexcept;
  void publish(std::byte* record, std::size_t bytes) noexcept;
  /// Whether nothing is claimed. A writer may claim at any time.
  [[nodiscard]] bool empty() const noexcept {
    return (tail_.load(std::memory_order_acquire) & ~kClosed) ==
           head_.load(std::memory_order_acquire);
  }

  // --- the reader --------------------------------------------------------------------------------
  /// Whether a record is there for read(). Unlike empty(), it takes no line from the writers but
  /// that of the next record.
  [[nodiscard]] bool ready() const noexcept {
    return header_at(head_.load(std::memory_order_relaxed)).load(std::memory_order_relaxed) != 0;
  }
  /// Gives `see(record)` the records, until there are none, or it returns false: that record stays
  /// the first one. Returns how many records it took.
  template <class See>
  std::size_t read(See&& see) {
    std::size_t taken = 0;
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    for (;; ++taken) {
      std::uint64_t header = header_at(head).load(std::memory_order_acquire);
      if ((header & kPadding) != 0) {
        head = pass(head, header);
        header = header_at(head).load(std::memory_order_acquire);
      }
      if (header == 0) return taken;
      const std::size_t bytes = header >> kBytesShift;
      if (!see(std::span(record_at(head), bytes))) return taken;
      head = pass(head, header);
    }
  }
  /// NODE-R5. What has been claimed can still be read.
  void close() noexcept { tail_.fetch_or(kClosed, std::memory_order_acq_rel); }

 private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kReady = 1;    // so that a record without bytes has a header, too
  static constexpr std::uint64_t kPadding = 2;  // nothing is behind it but the ring's end
  static constexpr unsigned kBytesShift = 2;
  static constexpr std::size_t kHeaderBytes = 16;  // keeps records aligned

  [[nodiscard]] static std::size_t room_of(std::size_t bytes) noexcept {
    return (bytes + kHeaderBytes + 15) / 16 * 16;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& header_at(std::uint64_t position) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.get() +
                                                          (position & (capacity_ - 1)));
  }
  [[nodiscard]] std::byte* record_at(std::uint64_t position) const noexcept {
    return memory_.get() + (position & (capacity_ - 1)) + kHeaderBytes;
  }
  std::uint64_t pass(std::uint64_t head, std::uint64_t header) noexcept;

  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  const std::size_t capacity_;
  std::unique_ptr<std::byte[], Free> memory_;
  alignas(128) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> seen_head_{0};  // as a writer saw it last
  alignas(128) std::atomic<std::uint64_t> head_{0};
};

}  // namespace dunlin::node
