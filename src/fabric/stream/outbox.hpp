#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "fabric/stream/transport.hpp"

/// The frames on their way to one peer: the frame being composed, in a buffer of the transport; and
/// frames that wait for a buffer, on the heap.
///  STR-O1  Entries leave in the order in which they were made: while frames wait, new entries go
///      behind them.
///  STR-O2  An entry for which room is asked by offer() is refused when there is no buffer. So only
///      what must not be refused waits: answers, control entries, and the rest of an operation
///      whose beginning has been taken.
namespace dunlin::stream {

class Outbox {
 public:
  Outbox(Transport& transport, Rank to) : transport_(&transport), to_(to) {}
  Outbox(Outbox&&) noexcept = default;
  Outbox& operator=(Outbox&&) noexcept = default;
  ~Outbox() = default;

  /// Room in the frame under composition, at least `bytes` of it (for a whole entry); 0: there is
  /// none.
  [[nodiscard]] std::size_t offer(std::size_t bytes) noexcept;
  /// Room as from offer(), but in any case: if there is no buffer, on the heap.
  [[nodiscard]] std::size_t insist(std::size_t bytes);
  /// Takes the next `bytes` of that room.
  [[nodiscard]] std::byte* take(std::size_t bytes) noexcept;

  /// Puts bytes of a put behind the frame under composition; returns how many. Requires that there
  /// is room for the entry. The bytes are read until the next settle() or flush() returns.
  [[nodiscard]] std::size_t attach(const std::byte* from, std::size_t bytes) noexcept {
    return waiting_.empty() ? transport_->attach(to_, from, bytes) : 0;
  }
  void settle() noexcept { transport_->settle(to_); }
  [[nodiscard]] std::size_t unsettled_bytes() const noexcept {
    return transport_->unsettled_bytes(to_);
  }

  /// Says that the last `bytes` taken answer the peer, which has a limit on waiting answers.
  void count_answer(std::size_t bytes) noexcept {
    if (waiting_.empty()) return;
    waiting_.back().answer_bytes += bytes;
    answer_bytes_waiting_ += bytes;
  }
  [[nodiscard]] std::size_t answer_bytes_waiting() const noexcept { return answer_bytes_waiting_; }

  /// Sends the frames that there are, as far as the transport has buffers.
  void flush() noexcept;
  /// How many frames the transport has been given so far.
  [[nodiscard]] std::uint64_t frames_sent() const noexcept { return frames_sent_; }
  [[nodiscard]] bool empty() const noexcept { return used_ == 0 && waiting_.empty(); }
  [[nodiscard]] std::size_t waiting_frames() const noexcept { return waiting_.size(); }
  /// Forgets all frames.
  void clear() noexcept;

 private:
  struct Waiting {
    std::unique_ptr<std::byte[]> frame;
    std::size_t used = 0;
    std::size_t answer_bytes = 0;
  };
  void commit() noexcept;

  Transport* transport_;
  Rank to_;
  std::byte* lent_ = nullptr;
  std::size_t used_ = 0;  // used bytes of the lent buffer
  std::deque<Waiting> waiting_;
  std::size_t answer_bytes_waiting_ = 0;
  std::uint64_t frames_sent_ = 0;
};

/// offer() is inline because it is on the path of every small operation.
inline std::size_t Outbox::offer(std::size_t bytes) noexcept {
  if (!waiting_.empty()) [[unlikely]]
    return 0;
  if (lent_ != nullptr && transport_->frame_bytes() - used_ < bytes) commit();
  if (lent_ == nullptr) lent_ = transport_->lend(to_);
  return lent_ == nullptr ? 0 : transport_->frame_bytes() - used_;
}

inline std::byte* Outbox::take(std::size_t bytes) noexcept {
  std::size_t& used = waiting_.empty() ? used_ : waiting_.back().used;
  std::byte* const frame = waiting_.empty() ? lent_ : waiting_.back().frame.get();
  std::byte* const at = frame + used;
  used += bytes;
  return at;
}

}  // namespace dunlin::stream
