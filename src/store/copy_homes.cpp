#include <algorithm>
#include <optional>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

/// The homes of a key, in a store with two copies (docs/store.md, "Two copies"): the members of
/// lower ranks are the places of a ring, and a member to which a home's keys have moved has that
/// home's place. The first two that are there, from the key's own place on, have the key.
namespace dunlin::store {

using remote::Status;

// --- the ring ------------------------------------------------------------------------------------

/// If it is assumed that a home's positions have moved, where that leads to.
Rank State::assumed_place(Rank home, std::uint64_t position,
                          const Assumed* assumed) const noexcept {
  const Rank at = place_of(home, position);
  const bool moves = assumed != nullptr && assumed->has_moved && at == assumed->mover;
  return moves ? place_of(assumed->to, position) : at;
}

Rank State::first_of(Rank home, std::uint64_t position) const noexcept {
  for (std::uint32_t i = 0; i < members; ++i)
    if (const Rank at = place_of((home + i) % members, position); !progress.is_gone(at)) return at;
  return place_of(home, position);
}

/// A home that has moved the position, and still has what is second there: the first home's chains
/// say, one after the other, that they make their second copies elsewhere (STO-M10).
std::optional<Rank> State::undrained_place(Rank home, std::uint64_t position, Rank first,
                                           const Assumed* assumed) const noexcept {
  const auto is_undrained = [&](Rank at) {
    const Home::Shed* const shed = homes[first].shed_of(at);
    const bool ignores_marks = assumed != nullptr && assumed->ignores_marks;
    const bool is_marked = shed != nullptr && !ignores_marks && position < shed->below &&
                           position < shed->marked_below;
    const bool is_assumed = assumed != nullptr && assumed->is_shed && assumed->mover == at;
    return position >= homes[at].drained_below && at != first && !progress.is_gone(at) &&
           !is_marked && !is_assumed;
  };
  const auto follow = [&](Rank at) -> std::optional<Rank> {
    for (std::uint32_t hops = 0; hops < places && has_moved(at, position);
         ++hops, at = homes[at].moved_to)
      if (is_undrained(at)) return at;
    return std::nullopt;
  };
  if (const auto found = follow(home)) return found;
  if (!progress.is_gone(moved_place(home, position))) return std::nullopt;
  if (position < own_gained(home))
    if (const auto found = follow(fabric.rank())) return found;
  if (homes[home].looked_in != progress.generation()) return std::nullopt;
  for (const Home::Cover& cover : homes[home].covers)
    if (position < cover.below)
      if (const auto found = follow(cover.by)) return found;
  return std::nullopt;
}

KeyHomes State::homes_of(Rank home, std::uint64_t position, const Assumed* assumed) const noexcept {
  KeyHomes found{.first = home, .second = std::nullopt};
  bool has_first = false;
  for (std::uint32_t i = 0; i < (has_copies() ? members : 1); ++i) {
    const Rank place = (home + i) % members;
    const Rank at = assumed_place(place, position, assumed);
    if (!has_first) {
      has_first = !progress.is_gone(at);
      if (has_first || i == 0) found.first = at;
      continue;
    }
    if (const auto undrained = undrained_place(place, position, found.first, assumed)) {
      found.second = undrained;
      return found;
    }
    if (at == found.first || progress.is_gone(at)) continue;
    found.second = at;
    return found;
  }
  return found;
}

Rank State::first_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash);
  if (!has_changed_homes) return home;
  const std::uint64_t position = IndexShape::position_of(hash);
  return has_copies() ? first_of(home, position) : place_of(home, position);
}

std::optional<Rank> State::second_home_of(std::uint64_t hash) const noexcept {
  if (!has_copies()) return std::nullopt;
  return homes_of(home_of(hash), IndexShape::position_of(hash)).second;
}

/// A chain of that home says that its second copies are not at a member any more.
void State::learn_shed(Rank first, std::uint64_t position, std::uint64_t word) noexcept {
  Home& home = homes[first];
  const std::uint64_t depth = shed_depth::depth(word);
  if (!home.shape.is_depth(depth)) return;
  const std::uint64_t end = home.shape.end_of(position, static_cast<std::uint32_t>(depth));
  const Rank mover = shed_depth::mover(word);
  const std::uint64_t below = shed_depth::below(word);
  if (mover >= places) return;
  const auto shed = std::ranges::find(home.sheds, mover, &Home::Shed::mover);
  if (shed == home.sheds.end())
    home.sheds.push_back({.mover = mover, .below = below, .marked_below = end});
  else if (below > shed->below)  // a further move of the same home
    *shed = {.mover = mover, .below = below, .marked_below = end};
  else if (below == shed->below)
    shed->marked_below = std::max(shed->marked_below, end);
  // It has moved more than this process knows.
  if (below > homes[mover].moved_below && !progress.is_gone(mover)) look_at_index_again(mover);
}

void State::learn_drained(Rank home, std::uint64_t below) noexcept {
  homes[home].drained_below = std::max(homes[home].drained_below, below);
}

std::vector<std::uint64_t> State::bounds() const {
  std::vector<std::uint64_t> all{0, kAllPositions};
  for (const Home::Shed& shed : homes[fabric.rank()].sheds) all.push_back(shed.marked_below);
  for (const Home& one : homes) {
    all.insert(all.end(), {one.moved_below, one.drained_below});
    for (const Home::Cover& cover : one.covers) all.push_back(cover.below);
  }
  const auto own_word = [&](std::uint64_t at) {
    return memory::load(word_at(redo.memory().data() + at));
  };
  for (Rank home = 0; home < members; ++home) {
    const std::uint64_t ranks = progress.capacity();
    const std::uint64_t covered = own_word(covered_at(ranks, members, home));
    all.insert(all.end(), {own_gained(home), own_stale(home), covered_word::from(covered),
                           covered_word::below(covered),
                           kAllPositions - own_word(covered_last_at(ranks, members, home))});
    for (const Home& one : homes)
      if (home + members < one.covered.size())
        all.insert(all.end(),
                   {covered_word::from(one.covered[home]), covered_word::below(one.covered[home]),
                    kAllPositions - one.covered[home + members]});
  }
  std::erase_if(all, [](std::uint64_t bound) { return bound > kAllPositions; });
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Of the own part, in the order of homes and positions.
std::vector<KeyGroup> State::groups_served(const Assumed& assumed) const {
  std::vector<std::uint64_t> all{0, kAllPositions};
  if (has_copies()) all = bounds();
  if (!has_copies())
    for (Rank home = 0; home < members; ++home) all.push_back(own_gained(home));
  if (!has_copies()) all.push_back(homes[fabric.rank()].moved_below);
  std::ranges::sort(all);
  std::vector<KeyGroup> groups;
  for (Rank home = 0; home < members; ++home)
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      const std::uint64_t from = all[i];
      if (all[i + 1] == from || !serves(home, from)) continue;
      const KeyGroup group{.home = home,
                           .from = from,
                           .below = all[i + 1],
                           .now = homes_of(home, from),
                           .then = homes_of(home, from, &assumed)};
      const bool continues = !groups.empty() && groups.back().home == home &&
                             groups.back().below == from && groups.back().now == group.now &&
                             groups.back().then == group.then;
      if (continues)
        groups.back().below = group.below;
      else
        groups.push_back(group);
    }
  return groups;
}

/// Words only get more (Raises): an interval that grows as a move goes on, and the last positions.
void State::claim(Raises& raises, Rank at, Rank home, std::uint64_t from,
                  std::uint64_t below) const {
  const std::uint64_t ranks = homes[at].ranks;
  if (below == kAllPositions)
    raises.add({.at = at,
                .offset = covered_last_at(ranks, members, home),
                .from = 0,
                .below = below - from});
  if (below < kAllPositions || from == 0)
    raises.add({.at = at,
                .offset = covered_at(ranks, members, home),
                .from = from,
                .below = below,
                .is_interval = true});
}

// --- who has taken over --------------------------------------------------------------------------

/// Whether all members that could have got the keys of places that are gone have been asked.
Status State::find_homes(Rank home, std::uint64_t position) noexcept {
  if (!has_copies()) return find_place(home, position);
  std::optional<Rank> first;
  for (std::uint32_t i = 0; i < members; ++i) {
    const Rank place = (home + i) % members;
    const Status status = find_place(place, position);
    if (status == Status::busy || status == Status::under_way) return status;
    if (status != Status::ok) continue;
    if (first && *first != place_of(place, position)) break;
    first = place_of(place, position);
  }
  return Status::ok;
}

bool State::is_open(Rank rank) const noexcept {
  const std::uint64_t opened =
      rank == fabric.rank() && copies != nullptr ? copies->opened() : homes[rank].opened;
  return opened >= progress.generation();
}

/// A member whose place has keys of those that are gone behind it, or has got a dead home's keys
/// without being told so by that home's chains.
bool State::has_taken_over(Rank home, std::uint64_t position, Rank at) const noexcept {
  return has_copies() && moved_place(home, position) != at;
}

/// It has them all, or has got them by a move.
bool State::covers(Rank home, std::uint64_t position, Rank at) const noexcept {
  if (place_of(home, position) == at) return true;
  if (at == fabric.rank()) return has_copies_of(home, position);
  const std::vector<std::uint64_t>& covered = homes[at].covered;
  return home + members < covered.size() && (covered_word::has(covered[home], position) ||
                                             position >= kAllPositions - covered[home + members]);
}

bool State::has_copies_of(Rank home, std::uint64_t position) const noexcept {
  if (!is_home || !has_copies()) return false;
  const auto own_word = [&](std::uint64_t at) {
    return memory::load(word_at(redo.memory().data() + at));
  };
  const std::uint64_t ranks = progress.capacity();
  return covered_word::has(own_word(covered_at(ranks, members, home)), position) ||
         position >= kAllPositions - own_word(covered_last_at(ranks, members, home));
}

bool State::is_lost(Rank home, std::uint64_t position) const noexcept {
  if (!has_copies()) return progress.is_gone(place_of(home, position)) && has_looked(home);
  const Rank at = first_of(home, position);
  if (progress.is_gone(at)) return true;
  const bool is_known = at == fabric.rank() || homes[at].covered_in == progress.generation();
  return has_taken_over(home, position, at) && is_known && is_open(at) &&
         !covers(home, position, at);
}

bool State::has_another_home(Rank home, std::uint64_t position, Rank gone) const noexcept {
  if (is_lost(home, position)) return false;
  if (!has_copies()) return place_of(home, position) != gone || !homes[gone].withdrawn;
  const Rank first = first_of(home, position);
  return !is_gone(first != gone ? first : gone);
}

/// know_index(), and more if that member has taken over. `busy`: not all members know yet.
Status State::know_home(Rank home, std::uint64_t position, Rank at) noexcept {
  const bool takes_over = has_taken_over(home, position, at);
  if (takes_over && !is_open(at)) look_at_index_again(at);
  const Status known = know_index(at);
  if (known != Status::ok || !takes_over) return known;
  if (!is_open(at)) return Status::busy;
  if (at != fabric.rank())
    if (const Status covered = know_covered(at); covered != Status::ok) return covered;
  return covers(home, position, at) ? Status::ok : Status::lost;
}

/// Of all homes at once, what that member has of their keys.
Status State::know_covered(Rank at) noexcept {
  Home& one = homes[at];
  const std::uint64_t generation = progress.generation();
  if (one.covered_in == generation) return Status::ok;
  if (!one.reads_covered) {
    one.covered.resize(2 * std::size_t{members});
    one.covered_look.reset();
    one.reads_covered = fabric
                            .post(read(at, redo.id(), covered_at(one.ranks, members, 0),
                                       one.covered.data(), one.covered.size() * kWordBytes)
                                      .notify(one.covered_look))
                            .all();
    one.covered_read_in = generation;
    return Status::under_way;
  }
  if (!one.covered_look.finished()) return Status::under_way;
  one.reads_covered = false;
  if (one.covered_look.failed() || one.covered_read_in != generation) return Status::busy;
  one.covered_in = generation;
  return Status::ok;
}

}  // namespace dunlin::store
