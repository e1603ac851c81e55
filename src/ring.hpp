#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dunlin {

/// A first-in-first-out queue in one array. With a capacity it allocates once, and push() needs
/// room; without one it allocates nothing until it is used, and push_or_grow() makes room.
///
///     Ring<Reading> reads(64);
///     if (!reads.full()) reads.push(reading);
///     for (; !reads.empty(); reads.pop()) finish(reads.front());
template <class T>
class Ring {
 public:
  Ring() = default;
  explicit Ring(std::size_t capacity) : slots_(std::bit_ceil(capacity)), capacity_(capacity) {}

  [[nodiscard]] bool empty() const noexcept { return pushed_ == popped_; }
  [[nodiscard]] bool full() const noexcept { return size() == capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return pushed_ - popped_; }
  /// How many were ever pushed, and popped: the numbers of the next element and of the oldest one.
  [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::uint64_t popped() const noexcept { return popped_; }

  /// By its number. Requires popped() <= number < pushed().
  [[nodiscard]] T& at(std::uint64_t number) noexcept { return slots_[place(number)]; }
  [[nodiscard]] const T& at(std::uint64_t number) const noexcept { return slots_[place(number)]; }
  /// The i-th from the front. Requires i < size().
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return at(popped_ + i); }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return at(popped_ + i); }
  /// The oldest element. Requires !empty().
  [[nodiscard]] T& front() noexcept { return at(popped_); }
  [[nodiscard]] const T& front() const noexcept { return at(popped_); }

  /// Requires !full().
  void push(T value) noexcept { slots_[place(pushed_++)] = std::move(value); }
  void push_or_grow(T value) {
    if (full()) grow();
    push(std::move(value));
  }
  /// Requires !empty(). The element is destroyed when another takes its place.
  void pop() noexcept { ++popped_; }
  void clear() noexcept { popped_ = pushed_; }

 private:
  static constexpr std::size_t kFirstCapacity = 8;

  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<T> larger(std::max(kFirstCapacity, 2 * slots_.size()));
    for (std::uint64_t number = popped_; number != pushed_; ++number)
      larger[number & (larger.size() - 1)] = std::move(at(number));
    slots_ = std::move(larger);
    capacity_ = slots_.size();
  }

  std::vector<T> slots_;  // a power of two of them, so that places wrap by a mask
  std::size_t capacity_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t popped_ = 0;
};

}  // namespace dunlin
