#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

/// Compares what the members of a simulated group saw with the promises of docs/group.md and
/// docs/multicast.md. Pure.
namespace dunlin::app::sim {

/// A message carries its sender, and its number among that member's messages in the subgroup.
struct MessageId {
  std::uint32_t node = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(const MessageId&, const MessageId&) = default;
};

/// One subgroup as one member saw it.
struct SubgroupLog {
  struct Entry {
    std::uint64_t view;
    MessageId message;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> delivered;
  std::size_t loaded = 0;      // how many of these came with the state
  std::uint64_t accepted = 0;  // how many own messages were taken
  bool member = false;
  bool sender = false;
  /// Messages delivered before are not in it. A member that came with the state has all; a member
  /// that waits for the state has nothing: kNothingYet.
  std::uint64_t from_view = 1;
  static constexpr std::uint64_t kNothingYet = UINT64_MAX;
  /// For a subgroup that comes at run time: everything of earlier views has been delivered here.
  std::uint64_t in_view = UINT64_MAX;
};

struct NodeLog {
  std::string name;
  std::vector<View> views;
  std::vector<SubgroupLog> subgroups;
  bool dead = false;   // crashed, or hung
  bool left = false;   // it has asked to leave
  bool ended = false;  // it is in no view any more, and knows it
  bool founder = true;
  bool waits = false;          // it waits to come in
  bool lost_state = false;     // it has ended, because nobody is left that had the state
  std::string lacks_log = {};  // it left, because nobody is left that had this subgroup's log
  /// The last view that it was in; 0: none.
  [[nodiscard]] std::uint64_t last_view() const noexcept {
    return views.empty() ? 0 : views.back().number;
  }
};

struct SubgroupPlan {
  std::string name;
  multicast::Mode mode;
};

struct Record {
  std::vector<SubgroupPlan> subgroups;
  std::vector<NodeLog> nodes;
  /// Nothing was injected but crashes, hung processes, and leaves: so only these were suspected.
  bool clear_cut = false;
};

/// The first promise that was broken, as a sentence; empty if none was. `at_rest`: the faults were
/// mended, and there was time enough for everything to arrive.
[[nodiscard]] std::string find_fault(const Record& record, bool at_rest);

}  // namespace dunlin::app::sim
