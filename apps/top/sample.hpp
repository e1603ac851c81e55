#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/table/layout.hpp>

#include "fabric/mapping/mapping.hpp"
#include "top/counters.hpp"
#include "top/multicast.hpp"
#include "top/process.hpp"
#include "top/table_counters.hpp"
#include "top/value.hpp"

/// The groups of this host as they were at one moment: values only, which both outputs print. For
/// any contents of the observed memory, taking a sample ends, and reads nothing outside of it.
namespace dunlin::top {

/// A segment of another process, mapped read-only.
struct Segment {
  mapping::MappingInfo info = {};
  pid_t pid = 0;            // where we found it; the owner's own idea of its number may differ
  std::string access = {};  // users that may be in the group: "user alice", "Unix group lab"
  std::span<const std::byte> payload = {};
  std::shared_ptr<const void> mapping = nullptr;
};

/// The statistics of a member's fabric (its base segment).
struct LoopSample {
  bool asleep = false;              // waits for its doorbell
  std::uint64_t last_watch_ns = 0;  // when poll() last looked at the clock
  std::vector<Rank> failed_peers = {};
};

struct Member {
  Rank rank = 0;
  std::string name = {};  // empty if members are counted
  pid_t pid = 0;
  std::uint64_t incarnation = 0;
  std::optional<ProcessSample> process = {};  // nothing: gone since its memory was found
  std::optional<double> cpu_percent = {};
  std::optional<LoopSample> loop = {};
};

/// One member's part of a table.
struct Node {
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  std::optional<TableSample> counters = {};
  std::optional<MulticastSample> multicast = {};  // if the table is one of a multicast
};

/// The state of a row at another node.
struct Sighting {
  Rank by = 0;
  RowStatus status;
};

struct Row {
  std::size_t row = 0;
  Rank rank = 0;
  std::optional<Rank> read_from = {};  // the member whose copy was read: the owner, if it lives
  std::optional<std::uint64_t> age_ns = {};  // since the last push; in reads mode, the slowest pull
  std::vector<Sighting> seen = {};
  std::vector<ColumnValues> values = {};  // by column; empty if there was nowhere to read it
};

struct Table {
  std::string name = {};
  std::uint64_t generation = 0;
  std::uint64_t layout_hash = 0;
  Refresh refresh = Refresh::writes;
  Layout layout = {};
  std::vector<Rank> ranks = {};  // by row
  std::optional<std::uint64_t> made_ns = {};
  std::vector<Node> nodes = {};
  std::vector<Row> rows = {};

  /// Its owner's part of a row, if it is there.
  [[nodiscard]] const Node* node(Rank rank) const;
  /// The member of a multicast for which the others wait: it has received the fewest messages, or,
  /// durable, has the fewest on its disk. Nothing if all have as many.
  [[nodiscard]] std::optional<Rank> slowest() const;
  /// How much less a member of a multicast has than the one that has most.
  [[nodiscard]] std::uint64_t behind(const MulticastSample& member) const;
};

struct Group {
  std::string name = {};
  std::string access = {};
  std::string fabric = {};  // "shm", "tcp", "auto", "ofi", "verbs"
  std::uint32_t size = 0;   // members that it was made of
  std::vector<Member> members = {};
  std::vector<Table> tables = {};
  std::vector<MemberCounter> counters = {};  // by rank, in the order in which they were added

  [[nodiscard]] const Member* member(Rank rank) const;
  /// Its name, or its rank if it has none, or is gone.
  [[nodiscard]] std::string name_of(Rank rank) const;
};

struct Sample {
  std::uint64_t now_ns = 0;               // CLOCK_MONOTONIC, which members' clocks agree with
  std::optional<double> interval_s = {};  // between the two samples that the rates come from
  std::vector<Group> groups = {};
  std::vector<std::string> remarks = {};  // what could not be read, and why: sentences
};

/// `now_ns` is CLOCK_MONOTONIC; `process` is read_process(), but for tests.
using ProcessReader = std::function<std::optional<ProcessSample>(pid_t)>;
[[nodiscard]] Sample take_sample(std::span<const Segment> segments, std::uint64_t now_ns,
                                 const ProcessReader& process = read_process);

/// Fills in the rates of `after`, and its interval.
void compare(const Sample& before, Sample& after);

}  // namespace dunlin::top
