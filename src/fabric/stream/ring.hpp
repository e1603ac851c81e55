#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// A queue of bounded length that allocates once: what waits for the peer's answer, in order.
namespace dunlin::stream {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t slots) : slots_(slots) {}

  [[nodiscard]] bool full() const noexcept { return head_ - tail_ == slots_.size(); }
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  /// How many were ever pushed, and popped: the places of the next one and of the oldest.
  [[nodiscard]] std::uint64_t pushed() const noexcept { return head_; }
  [[nodiscard]] std::uint64_t popped() const noexcept { return tail_; }

  /// Requires !full().
  void push(const T& value) noexcept { slots_[head_++ % slots_.size()] = value; }
  /// Requires popped() <= place < pushed().
  [[nodiscard]] T& at(std::uint64_t place) noexcept { return slots_[place % slots_.size()]; }
  /// Requires !empty().
  [[nodiscard]] T& oldest() noexcept { return at(tail_); }
  void pop() noexcept { ++tail_; }

 private:
  std::vector<T> slots_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace dunlin::stream
