#include <string>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

/// What a member's part of joins, leaves and moves waits for, as text for people.
namespace dunlin::store {

std::string State::describe_moves() const {
  const auto word = [&](std::uint64_t at) {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(index.memory().data() + at));
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::string text = "member " + number(fabric.rank()) + " in generation " +
                     number(progress.generation()) + ", of members";
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (progress.contains(rank)) text += " " + number(rank);
  if (progress.stopped()) text += "; stopped: " + progress.why_stopped();
  if (departure != nullptr)
    text += "; leaves or gives: " + std::string(departure->describe()) + ", to member " +
            number(leave_word::to(word(kLeaveAt))) + ", below " + number(word(kMovedAt));
  if (const std::uint64_t asked = word(kAskAt); asked != 0)
    text += "; asked by member " + number(ask_word::by(asked)) +
            (ask_word::is_answered(asked) ? ", answered" : "");
  if (arrival != nullptr) text += "; takes: " + std::string(arrival->describe());
  if (shedding != nullptr) text += "; sheds: " + std::string(shedding->describe());
  if (copies != nullptr)
    text += "; second copies: of generation " + number(copies->opened()) +
            (copies->complete() ? ", complete" : ", not complete");
  if (word(kToldAt) != 0) text += "; is told of a move";
  for (Rank rank = 0; rank < places; ++rank) {
    const Home& home = homes[rank];
    if (rank == fabric.rank() || progress.is_gone(rank)) continue;
    if (home.withdrawn || home.refused || !fabric.connected(rank, index.id()))
      text += "; member " + number(rank) + "'s store " +
              (home.withdrawn ? "has ended"
               : home.refused ? "is refused"
                              : "is not connected");
    if (home.moved_below != 0)
      text += "; keys of member " + number(rank) + " below " + number(home.moved_below) +
              " are at member " + number(home.moved_to);
  }
  return text;
}

std::string_view Departure::describe() const noexcept {
  static constexpr std::array<std::string_view, 18> kStages{
      "claim", "turn",  "ready", "readied", "move",    "raise", "release",  "gone",  "tell",
      "ask",   "asked", "await", "awaited", "drained", "sweep", "sweeping", "swept", "ended"};
  static_assert(static_cast<std::size_t>(Stage::ended) == 17);
  return kStages.at(static_cast<std::size_t>(stage_));
}

std::string_view Arrival::describe() const noexcept {
  static constexpr std::array<std::string_view, 9> kStages{
      "look", "looked", "ask", "asked", "wait", "waited", "thank", "thanked", "ended"};
  static_assert(static_cast<std::size_t>(Stage::ended) == 8);
  return kStages.at(static_cast<std::size_t>(stage_));
}

std::string_view Shedding::describe() const noexcept {
  static constexpr std::array<std::string_view, 7> kStages{"idle", "look",  "ready",  "wait",
                                                           "move", "raise", "release"};
  static_assert(static_cast<std::size_t>(Stage::release) == 6);
  return kStages.at(static_cast<std::size_t>(stage_));
}

}  // namespace dunlin::store
