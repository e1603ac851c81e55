#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "group/view_change.hpp"

/// What is said around a view change: at the listener, between a leader and its members, and to
/// those that come in.
namespace dunlin::group {

/// A fabric for the next view, and who is to be in it.
struct Plan {
  PlanId id = kNoPlan;
  std::string fabric;
  std::string address;               // where its first member is found
  std::vector<std::string> members;  // of the view at hand, in order, and then those that come in
  std::uint32_t joiners = 0;         // how many those are
};

struct ControlMessage {
  enum class Kind : std::uint8_t {
    hello,      // joiner to leader: name, text (what subgroups it declares)
    refused,    // leader to joiner: text
    news,       // leader to joiner: text (what it waits for)
    plan,       // leader to all
    void_plan,  // leader to all: id
    formed,     // to the leader: id
    failed,     // to the leader: id, text
    welcome,    // on the new fabric: view, ranks (of its members, in order), count (of joiners),
                // bytes (one a subgroup: whether it had members before)
    want,       // view, count (which subgroup)
    state       // view, count (which subgroup), good, bytes
  };
  Kind kind;
  std::string name = {};
  std::string text = {};
  Plan plan = {};
  PlanId id = kNoPlan;
  std::uint64_t view = 0;
  std::uint32_t count = 0;
  bool good = false;
  std::vector<Rank> ranks = {};
  std::vector<std::byte> bytes = {};
};

[[nodiscard]] std::vector<std::byte> encode(const ControlMessage& message);
/// None for what is no control message.
[[nodiscard]] std::optional<ControlMessage> decode(std::span<const std::byte> bytes);

}  // namespace dunlin::group
