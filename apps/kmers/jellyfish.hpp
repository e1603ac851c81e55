#pragma once

#include <string>

#include "kmers/count.hpp"

/// Debian's `jellyfish`, an independent counter of k-mers.
namespace dunlin::kmers {

struct Comparison {
  std::uint64_t kmers = 0;        // those that both have, with equal counts
  std::uint64_t differences = 0;  // those that only one has, or with another count
  std::string first;              // the first of them, in a sentence; empty if there is none
  double count_s = 0;             // what `jellyfish bc` and `jellyfish count` took
  std::uint64_t peak_bytes = 0;   // the most resident memory of either
};

/// Counts the same files by Jellyfish, with as many threads as there are processes, and compares
/// all k-mers and their counts with `counted`. With the filter, `jellyfish bc` makes one for
/// Jellyfish. Throws Error if it cannot be run.
[[nodiscard]] Comparison compare_with_jellyfish(const CountOptions& options,
                                                const Counted& counted);

}  // namespace dunlin::kmers
