#include <string>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

/// What a member knows of the slot map, as text for people.
namespace dunlin::store {

StorePlacement State::summarize_map() const {
  const MapSummary now = summarize(map());
  StorePlacement all{.version = map().version(),
                     .slots = now.slots,
                     .lost = now.lost,
                     .lacking = now.lacking,
                     .members = {}};
  for (const Holder& one : map().members()) {
    StorePlacement::Member& member = all.members.emplace_back(
        StorePlacement::Member{.rank = one.rank, .weight = one.weight, .takes = one.takes});
    for (std::uint32_t number = 0; number < map().slots(); ++number) {
      const PlacedSlot& slot = map().slot(number);
      if (slot.owner == one.rank)
        ++member.owned;
      else if (slot.is_backup(one.rank))
        ++member.copies;
      else if (slot.has_part(one.rank))
        ++member.partial;
    }
  }
  for (std::uint32_t number = 0; number < map().slots(); ++number) {
    const PlacedSlot& slot = map().slot(number);
    const bool rests = slot.settled && slot.incoming == kNobody && slot.emptying.front() == kNobody;
    all.moving += rests ? 0 : 1;
  }
  return all;
}

std::string State::describe_moves() const {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::string text = "member " + number(fabric.rank()) + " in generation " +
                     number(progress.generation()) + ", of members";
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (progress.contains(rank)) text += " " + number(rank);
  if (progress.stopped()) text += "; stopped: " + progress.why_stopped();
  if (placement != nullptr && !placement->why_stopped().empty())
    text += "; has no part in the map any more: " + placement->why_stopped();
  if (placement != nullptr && !placement->ready()) text += "; has no map yet";
  if (!map().created()) {
    text += "; the map has not been made; those that have the store:";
    for (const Holder& one : map().members())
      text += " " + number(one.rank) + " of weight " + number(one.weight) +
              (one.heard == 0 ? ", which has not said it," : ",");
    return text + " at version " + number(map().version());
  }
  const MapSummary now = summarize(map());
  text += "; map " + number(map().version()) + " of " + number(now.slots) +
          " slots: " + number(now.lost) + " lost, " + number(now.lacking) + " lack copies, " +
          number(now.moving) + " move, " + number(now.opening) + " open, " + number(now.emptying) +
          " are emptied";
  for (const StorePlacement::Member& one : summarize_map().members)
    text += "; member " + number(one.rank) + " of weight " + number(one.weight) + " owns " +
            number(one.owned) + ", has copies of " + number(one.copies) + ", and a part of " +
            number(one.partial) + (one.takes ? "" : ", and takes no more");
  if (mover != nullptr) text += "; here: " + mover->describe();
  std::uint64_t locked = 0;
  for (std::uint64_t i = 0; i < main_headers(); ++i)
    locked += memory::load(word_at(own_main(i) + kLockAt)) == 0 ? 0 : 1;
  text += ", " + number(locked) + " chains locked";
  for (Rank rank = 0; rank < places; ++rank) {
    const Home& home = homes[rank];
    if (rank == fabric.rank() || progress.is_gone(rank)) continue;
    if (home.withdrawn || home.refused || !fabric.connected(rank, index.id()))
      text += "; member " + number(rank) + "'s store " +
              (home.withdrawn ? "has ended"
               : home.refused ? "is refused"
                              : "is not connected");
  }
  return text;
}

}  // namespace dunlin::store
