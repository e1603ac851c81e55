#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sched.h>

namespace dunlin::bench {

/// Spins, and gives the core away when that has been in vain for long: to a peer that shares it.
class Patience {
 public:
  void after(bool something) noexcept {
    if (something) {
      fruitless_ = 0;
    } else if (++fruitless_ >= kFruitless) {
      sched_yield();
      fruitless_ = 0;
    }
  }

 private:
  static constexpr std::uint32_t kFruitless = 500;
  std::uint32_t fruitless_ = 0;
};

/// Loads a byte of each cache line, as the least that a receiver does with a message: a line that
/// no receiver reads never leaves the cache of the core that wrote it.
inline void look_at(std::span<const std::byte> message) noexcept {
  unsigned sum = 0;
  for (std::size_t at = 0; at < message.size(); at += 64)
    sum += std::to_integer<unsigned>(message[at]);
  asm volatile("" : : "r"(sum));
}

}  // namespace dunlin::bench
