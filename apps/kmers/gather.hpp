#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "kmers/counter.hpp"
#include "kmers/found.hpp"

namespace dunlin::kmers {

/// A Gathering brings the counts of all members to member 0, which writes a file of counts: range
/// by range of the k-mers, so that no member needs memory for all.
class Gathering {
 public:
  /// `meet` returns when all members have called it.
  Gathering(Containers& containers, const CountOptions& options, PartTimes& times,
            std::function<void()> meet);

  /// Called by all members, with the number of k-mers that all of them have together.
  /// `at_first_range` is called while memory for a range is in use.
  void run(KmerCounter& counter, Spill& singles, std::uint64_t all_kmers,
           const std::function<void()>& at_first_range);

 private:
  void collect(KmerCounter& counter, Spill& singles, Kmer from, Kmer end);
  void write_range(std::FILE& file);

  Containers& containers_;
  const CountOptions& options_;
  PartTimes& times_;
  std::function<void()> meet_;
  std::vector<FoundKmer> own_;                 // this member's of the range
  std::vector<std::vector<FoundKmer>> parts_;  // member 0: each member's of the range, in order
  Aggregator<FoundKmer> batches_;
};

}  // namespace dunlin::kmers
