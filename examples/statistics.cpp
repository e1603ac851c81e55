// Members measure, and combine what they have seen by a function where each statistic is kept; then
// each asks the others what they have done. Start three of it:
//
//     for i in 1 2 3; do ./statistics & done; wait

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include <dunlin/container.hpp>
#include <dunlin/join.hpp>

namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::uint64_t kMeasurements = 1'000;

/// A statistic of what all members have seen under one name.
struct Range {
  std::uint64_t count = 0, sum = 0, least = UINT64_MAX, most = 0;
};

/// Runs where the range is, so no measurement is lost, and none travels twice.
Range with(const std::optional<Range>& former, std::uint64_t seen) {
  Range range = former.value_or(Range());
  ++range.count;
  range.sum += seen;
  range.least = std::min(range.least, seen);
  range.most = std::max(range.most, seen);
  return range;
}

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "statistics", .members = kMembers});
  dunlin::Containers containers(*fabric);
  dunlin::Collectives team(containers, {.name = "team"});
  dunlin::HashMap<std::string, Range> ranges(containers,
                                             {.name = "ranges", .slots = 100, .key_bytes = 16});
  dunlin::Update<std::string, Range, std::uint64_t> widen(ranges, {.name = "widen"}, with);
  std::uint64_t own_sum = 0;
  dunlin::Function<std::string(std::string)> report(
      containers, {.name = "report"}, [&](const std::string& what) {
        return what + " of member " + std::to_string(fabric->rank()) + ": " +
               std::to_string(own_sum);
      });

  const std::string metric = "latency";
  for (std::uint64_t i = 0; i < kMeasurements; ++i) {
    const std::uint64_t seen = 100 * fabric->rank() + i % 100;
    own_sum += seen;
    const auto range = ranges.update(metric, widen, seen).outcome();
    if (!range.ok()) throw dunlin::Error(range.describe());
  }
  if (!team.barrier().outcome().ok()) throw dunlin::Error(team.describe());

  const Range all = ranges.find(metric).outcome().value();
  if (all.count != kMembers * kMeasurements || all.least != 0 || all.most != 299)
    throw dunlin::Error("a measurement has been lost");
  const dunlin::Rank next = (fabric->rank() + 1) % kMembers;
  const auto told = containers.at(next, report, "sum of latencies").outcome();
  if (!told.ok()) throw dunlin::Error(told.describe());
  std::cout << told.value() << ", of all members: " << all.sum << '\n';
  team.barrier().wait();  // nobody leaves before all have asked
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
