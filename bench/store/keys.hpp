#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <dunlin/store.hpp>

/// Which keys a benchmark asks for.
namespace dunlin::bench {

/// A mixed number: consecutive ones become unlike each other.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

/// Numbers below `count`, of which the number of rank r is drawn with a probability proportional to
/// 1 / (r + 1)^skew; which number has which rank is shuffled. Skew 0: all alike.
class SkewedNumbers {
 public:
  SkewedNumbers(std::uint32_t count, double skew, std::uint64_t seed)
      : random_(seed), numbers_(count), until_(count) {
    double sum = 0;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      numbers_[rank] = rank;
      sum += std::pow(rank + 1.0, -skew);
      until_[rank] = sum;
    }
    std::shuffle(numbers_.begin(), numbers_.end(), random_);
  }
  /// Other draws, with the same numbers of all ranks.
  void reseed(std::uint64_t seed) { random_.seed(seed); }
  std::uint32_t next() { return numbers_[next_rank()]; }
  std::uint32_t next_rank() {
    const double at = std::uniform_real_distribution<double>(0, until_.back())(random_);
    const auto found = std::upper_bound(until_.begin(), until_.end() - 1, at);
    return static_cast<std::uint32_t>(found - until_.begin());
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::uint32_t> numbers_;
  std::vector<double> until_;  // the sum of the probabilities up to a rank
};

/// So many keys that the member holds.
[[nodiscard]] inline std::vector<std::uint64_t> keys_of(const Store& store, Rank home,
                                                        std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; keys.size() < count; ++i)
    if (store.home_of(mixed(i)) == home) keys.push_back(mixed(i));
  return keys;
}

}  // namespace dunlin::bench
