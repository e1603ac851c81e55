#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

#include "group/view_change.hpp"

/// The messages around a view change: at the listener, between a leader and its members, and to
/// joiners.
namespace dunlin::group {

/// The joiners for the next view.
struct Plan {
  PlanId id = kNoPlan;
  Admission admission = {};
};

struct ControlMessage {
  enum class Kind : std::uint8_t {
    hello,      // joiner to leader: name, text (what subgroups it declares), bytes (its endpoint)
    refused,    // leader to joiner: text
    news,       // leader to joiner: text (what it waits for)
    plan,       // leader to members
    void_plan,  // leader to all: id
    formed,     // to the leader: id; a member is linked to all joiners, or a joiner to all
    failed,     // to the leader: id, text, count (the next rank that the member can give)
    welcome,    // member to joiner: view, ranks (of its members, in order), count (of joiners),
                // founders, bytes (one a subgroup: whether it had members before)
    want,       // view, count (which subgroup)
    state,      // view, count (which subgroup), good, bytes
    admitted,   // member to leader: id, bytes (its endpoint)
    enter,      // leader to joiner: plan, name (of the fabric), members, count (its place)
    subgroups   // view, bytes (a SubgroupMessage)
  };
  Kind kind;
  std::string name = {};
  std::string text = {};
  Plan plan = {};
  std::vector<Entry::Member> members = {};
  PlanId id = kNoPlan;
  std::uint64_t view = 0;
  std::uint32_t count = 0;
  bool good = false;
  std::vector<Rank> ranks = {};
  std::uint32_t founders = 0;
  std::vector<std::byte> bytes = {};
};

[[nodiscard]] std::vector<std::byte> encode(ControlMessage message);
[[nodiscard]] std::optional<ControlMessage> decode(std::vector<std::byte> bytes);

}  // namespace dunlin::group
