#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
  std::optional<double> per_s = std::nullopt;  // for a total or event of one word
};

/// The counters of one layer that have labels of one set of keys: those of all stores, say. By
/// labels, and then by member.
struct CounterBlock {
  /// The counters of one object at one member.
  struct Row {
    const MemberCounter* any = nullptr;  // any of the counters, for labels and member
    std::map<std::string_view, const MemberCounter*> counters = {};  // by short name
  };
  std::string layer = {};
  std::vector<std::string> keys = {};
  std::vector<std::string> names = {};  // short ones, as they were added
  std::vector<Row> rows = {};
};
/// Leaves out the counters of tables, which are shown with their tables.
[[nodiscard]] std::vector<CounterBlock> blocks_of(const std::vector<MemberCounter>& counters);

/// The counters of each table and multicast at each member.
class CounterIndex {
 public:
  explicit CounterIndex(const std::vector<MemberCounter>& counters);
  /// `object`: its labels, "table=load\ngeneration=1", say.
  [[nodiscard]] std::span<const CounterView* const> of(std::uint64_t incarnation,
                                                       const std::string& object) const;

 private:
  std::map<std::pair<std::uint64_t, std::string>, std::vector<const CounterView*>> counters_;
};

/// Fills in the rates of `after`.
void compare(const std::vector<MemberCounter>& before, std::vector<MemberCounter>& after,
             double seconds);

/// A segment's lock that members hold or wait for.
struct LockSample {
  std::string space = {};
  Rank home = 0;
  std::uint64_t offset = 0;
  std::optional<Rank> holder = {};
  std::vector<Rank> waiters = {};  // in the order in which they will get it
};
[[nodiscard]] std::vector<LockSample> locks_of(const std::vector<MemberCounter>& counters);

/// What one reckons from several counters of a row.
struct Reckoned {
  const char* layer;
  const char* name;
  std::optional<double> (*value)(const CounterBlock::Row& row);
};
[[nodiscard]] const std::vector<Reckoned>& reckoned();

}  // namespace dunlin::top
