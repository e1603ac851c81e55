#pragma once

#include <cstdint>

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

}  // namespace dunlin::bench
