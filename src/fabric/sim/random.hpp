#pragma once

#include <cstdint>

namespace dunlin::sim {

/// A bijection of 64-bit words in which every input bit moves about half of the output bits.
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A counter that steps by the golden ratio's fraction, scrambled (the construction known as
/// SplitMix64): period 2^64, any seed is as good as another, and the state is one word.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept { return scramble(state_ += 0x9e3779b97f4a7c15); }
  /// A number in [0, 1).
  constexpr double fraction() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// A number in [0, bound); the bias of the remainder is far below what a simulation could notice.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

 private:
  std::uint64_t state_;
};

/// A running digest of the words folded into it, in their order.
class Digest {
 public:
  constexpr void fold(std::uint64_t word) noexcept {
    value_ = (value_ ^ word) * 0x9fb21c651e98df25;
    value_ ^= value_ >> 32;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0x6475'6e6c'696e'0001;
};

}  // namespace dunlin::sim
