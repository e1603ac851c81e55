#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/counters/reader.hpp"

/// The counters of a group's members (docs/formats/counters.md). What they are called is for their
/// layers to say, but for what is reckoned from several of them.
namespace dunlin::top {

struct MemberCounter {
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  CounterView view = {};
  std::optional<double> per_s = std::nullopt;  // of a total of one word
};

/// The counters of one layer that have labels of one set of keys: those of all stores, say. By
/// labels, and then by member.
struct CounterBlock {
  /// The counters of one object at one member.
  struct Row {
    const MemberCounter* any = nullptr;  // with its labels and its member
    std::map<std::string_view, const MemberCounter*> counters = {};  // by short name
  };
  std::string layer = {};
  std::vector<std::string> keys = {};
  std::vector<std::string> names = {};  // short ones, as they were added
  std::vector<Row> rows = {};
};
/// Whether it is of a table or of a multicast, and is shown with the table.
[[nodiscard]] bool is_of_table(const CounterView& view);
/// Without those.
[[nodiscard]] std::vector<CounterBlock> blocks_of(const std::vector<MemberCounter>& counters);

/// Fills in the rates of `after`.
void compare(const std::vector<MemberCounter>& before, std::vector<MemberCounter>& after,
             double seconds);

/// A segment's lock that members hold or wait for.
struct LockSample {
  std::string space = {};
  Rank home = 0;
  std::uint64_t offset = 0;
  std::optional<Rank> holder = {};
  std::vector<Rank> waiters = {};  // in their order
};
[[nodiscard]] std::vector<LockSample> locks_of(const std::vector<MemberCounter>& counters);

/// What one reckons from several counters of a row.
struct Reckoned {
  const char* layer;
  const char* heading;
  std::optional<double> (*value)(const CounterBlock::Row& row);
};
[[nodiscard]] const std::vector<Reckoned>& reckoned();

}  // namespace dunlin::top
