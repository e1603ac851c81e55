#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/slot_map.hpp"

/// The planner says which decisions bring a slot map nearer to what it should be: each slot with as
/// many copies as the store wants, spread over the members by their weights. Pure: a function of
/// the map alone. So members that plan at the same time propose the same; and what one proposes for
/// a map that has changed meanwhile changes nothing (STO-P3).
///
///     for (const Decision& decision : plan(map, {})) ... order->propose ...
///
/// Joining, leaving, replacing a dead member and rebalancing are this one function. It proposes
/// `add`, `stop`, `own` and `renew`; the members that hold a slot propose the rest (Mover).
///
///  STO-P6  Once the members stay the same and do what is planned, nothing is left to plan after a
///          bounded number of decisions: each slot that is not lost has its copies where there are
///          enough members, no member that drains holds one that another could take, and no two
///          members differ by more than one slot from their shares, unless no slot can go from the
///          one to the other.
///  STO-P7  A member takes no more than `most_incoming` slots at a time, and gives no more than
///          `most_outgoing`.
namespace dunlin::store {

struct PlanLimits {
  std::uint32_t most_incoming = 256;
  std::uint32_t most_outgoing = 256;
};

[[nodiscard]] std::vector<Decision> plan(const SlotMap& map, const PlanLimits& limits);

/// What a member will say of a slot when it has done what the map asks of it (Mover): `full` of the
/// one that gets a copy, `opened`, or `emptied`.
[[nodiscard]] std::optional<Decision> duty_of(std::uint32_t number, const PlacedSlot& slot,
                                              Rank member) noexcept;

/// How far a map is from what it should be, for people to read.
struct MapSummary {
  std::uint32_t slots = 0;
  std::uint32_t lost = 0;
  std::uint32_t lacking = 0;   // have fewer copies than the store wants
  std::uint32_t moving = 0;    // a member gets a copy of them
  std::uint32_t opening = 0;   // have an owner that is not open yet
  std::uint32_t emptying = 0;  // a member has some of its keys that holds the slot no more
};
[[nodiscard]] MapSummary summarize(const SlotMap& map) noexcept;

}  // namespace dunlin::store
