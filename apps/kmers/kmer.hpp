#pragma once

#include <array>
#include <cstdint>
#include <string>

/// k-mers: k letters A, C, G or T, two bits each, the first letter in the highest. A k-mer and its
/// reverse complement are one, and the lesser of them stands for both.
namespace dunlin::kmers {

using Kmer = std::uint64_t;
inline constexpr std::uint32_t kMaxK = 31;

/// 0 to 3; 4 for a letter that is no base.
[[nodiscard]] constexpr std::uint8_t base_of(char c) noexcept {
  switch (c) {
    case 'A':
    case 'a':
      return 0;
    case 'C':
    case 'c':
      return 1;
    case 'G':
    case 'g':
      return 2;
    case 'T':
    case 't':
      return 3;
    default:
      return 4;
  }
}

inline constexpr auto kBases = [] {
  std::array<std::uint8_t, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = base_of(static_cast<char>(i));
  return all;
}();

[[nodiscard]] inline std::string text_of(Kmer kmer, std::uint32_t k) {
  std::string text(k, 'A');
  for (std::uint32_t i = 0; i < k; ++i) text[k - 1 - i] = "ACGT"[kmer >> (2 * i) & 3];
  return text;
}

}  // namespace dunlin::kmers
