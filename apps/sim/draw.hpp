#pragma once

#include <cstdint>
#include <random>

namespace dunlin::app::sim {

/// Draws the random choices of a scenario from its seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + below(most - least + 1);
  }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 random_;
};

}  // namespace dunlin::app::sim
