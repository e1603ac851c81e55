#pragma once

#include <cstdint>
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
/// `add`, `stop`, `own` and `renew`; the members that hold a slot propose `full` and `opened`
/// themselves (next_of()).
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
  std::uint32_t most_incoming = 4;
  std::uint32_t most_outgoing = 4;
};

[[nodiscard]] std::vector<Decision> plan(const SlotMap& map, const PlanLimits& limits);

/// What the map says that this member has to do for a slot.
enum class SlotDuty : std::uint8_t {
  none,   // it holds nothing of the slot, and gives back the memory of what it has
  keep,   // it is a backup
  serve,  // it is the owner, and open
  open,   // it is the owner: it closes the former one, aligns the backups, and proposes `opened`
  copy,   // it copies the slot from its owner, and proposes `full`
};
[[nodiscard]] SlotDuty duty_of(const PlacedSlot& slot, Rank member) noexcept;

/// How far a map is from what it should be, for people to read.
struct MapSummary {
  std::uint32_t slots = 0;
  std::uint32_t lost = 0;
  std::uint32_t lacking = 0;  // have fewer copies than the store wants
  std::uint32_t moving = 0;   // a member gets a copy of them
  std::uint32_t opening = 0;  // have an owner that has not said that it is open
};
[[nodiscard]] MapSummary summarize(const SlotMap& map) noexcept;

}  // namespace dunlin::store
