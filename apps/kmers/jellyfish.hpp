#pragma once

#include <string>

#include "kmers/count.hpp"

/// Debian's `jellyfish`, an independent counter of k-mers.
namespace dunlin::kmers {

struct Comparison {
  std::uint64_t kmers = 0;        // those that both have, with equal counts
  std::uint64_t differences = 0;  // those that only one has, or with another count
  std::string first;              // the first of them, in a sentence; empty if there is none
  double count_s = 0;             // what `jellyfish count` took
};

/// Counts the same files by Jellyfish, with as many threads as there are processes, and compares
/// all k-mers and their counts with `dump_file`. Throws Error if it cannot be run.
[[nodiscard]] Comparison compare_with_jellyfish(const CountOptions& options,
                                                const std::string& folder);

}  // namespace dunlin::kmers
