#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "kmers/count.hpp"
#include "kmers/found.hpp"
#include "kmers/part_times.hpp"
#include "kmers/spill.hpp"

namespace dunlin::kmers {

/// The k-mers and counts of this member, by ranges of the k-mers, in nameless files.
class Ranges {
 public:
  Ranges(const std::string& folder, std::uint32_t k);

  void add(FoundKmer found);
  [[nodiscard]] std::size_t size() const noexcept { return files_.size(); }
  /// The k-mers of a range, in order.
  void take(std::size_t range, std::vector<FoundKmer>& found);

 private:
  const double all_;  // k-mers that there may be
  std::vector<Spill> files_;
};

/// A Gathering brings the counts of all members to member 0, which writes a file of counts: range
/// by range, so that no member has memory for all.
class Gathering {
 public:
  /// `meet` returns when all members have called it.
  Gathering(Containers& containers, const CountOptions& options, PartTimes& times,
            std::function<void()> meet);

  /// Called by all members. `at_first_range` is called while memory for a range is in use.
  void run(Ranges& ranges, const std::function<void()>& at_first_range);

 private:
  void write_range(std::FILE& file);

  Containers& containers_;
  const CountOptions& options_;
  PartTimes& times_;
  std::function<void()> meet_;
  std::vector<std::vector<FoundKmer>> parts_;  // member 0: each member's of the range, in order
  Aggregator<FoundKmer> batches_;
};

}  // namespace dunlin::kmers
