#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace dunlin::sim {

/// A first-in-first-out queue that allocates nothing until used, and then only to grow.
template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T& front() noexcept { return slots_[head_]; }
  [[nodiscard]] const T& front() const noexcept { return slots_[head_]; }
  /// The i-th from the front.
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }

  void push_back(T value) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_++) & (slots_.size() - 1)] = std::move(value);
  }
  void pop_front() noexcept {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void clear() noexcept { head_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two, so that places wrap by a mask
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace dunlin::sim
