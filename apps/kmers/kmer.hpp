#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

/// Calls `see(kmer)` for each k-mer of the letters; those with a letter that is no base are left
/// out.
template <class See>
void for_each_kmer(std::string_view letters, std::uint32_t k, const See& see) {
  const Kmer mask = (Kmer{1} << (2 * k)) - 1;
  const std::uint32_t top = 2 * (k - 1);
  Kmer forward = 0, backward = 0;
  std::uint32_t length = 0;
  for (const char c : letters) {
    const std::uint8_t base = kBases[static_cast<unsigned char>(c)];
    if (base > 3) {
      length = 0;
      continue;
    }
    forward = (forward << 2 | base) & mask;
    backward = backward >> 2 | Kmer{3U - base} << top;
    if (++length >= k) see(std::min(forward, backward));
  }
}

[[nodiscard]] inline std::string text_of(Kmer kmer, std::uint32_t k) {
  std::string text(k, 'A');
  for (std::uint32_t i = 0; i < k; ++i) text[k - 1 - i] = "ACGT"[kmer >> (2 * i) & 3];
  return text;
}

}  // namespace dunlin::kmers
