#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

/// Where the keys of a home are once it leaves or gives some away, with one copy of each
/// (docs/store.md, STO-M1 to STO-M8). The chains of the home say so themselves; what a process has
/// learned of them is kept.
namespace dunlin::store {

using remote::Status;

/// As far as this process has learned.
Rank State::moved_place(Rank home, std::uint64_t position) const noexcept {
  Rank at = home;
  for (std::uint32_t hops = 0; hops < places && has_moved(at, position); ++hops)
    at = homes[at].moved_to;
  return at;
}

bool State::is_gone(Rank rank) const noexcept {
  return progress.is_gone(rank) || (rank < places && homes[rank].withdrawn);
}

/// If that home is gone, a member that has its keys, as far as they have been asked.
Rank State::place_of(Rank home, std::uint64_t position) const noexcept {
  const Rank at = moved_place(home, position);
  if (!progress.is_gone(at)) return at;
  const Rank own = fabric.rank();
  if (is_home && position < own_gained(home))
    if (const Rank place = moved_place(own, position); !progress.is_gone(place)) return place;
  if (homes[home].looked_in != progress.generation()) return at;
  for (const Home::Cover& cover : homes[home].covers)
    if (position < cover.below)
      if (const Rank place = moved_place(cover.by, position); !progress.is_gone(place))
        return place;
  return at;
}

/// One member after the other. Those that hold keys from the beginning are waited for.
Status State::find_place(Rank home, std::uint64_t position) noexcept {
  const auto is_there = [&] { return !progress.is_gone(place_of(home, position)); };
  if (is_there()) return Status::ok;
  Home& one = homes[home];
  const std::uint64_t generation = progress.generation();
  if (has_looked(home)) return Status::lost;
  if (one.is_looking) {
    if (!one.look.finished()) return Status::under_way;
    one.is_looking = false;
    if (one.look.failed()) return Status::busy;  // until the members agree
    if (one.looks_in == generation && one.gained != 0)
      one.covers.push_back({one.looks_at, one.gained});
    ++one.looks_at;
  }
  if (one.looks_in != generation) {
    one.looks_in = generation;
    one.looks_since_ns = fabric.now_ns();
    begin_look(one);
  }
  for (; one.looks_at < places; ++one.looks_at)
    if (const auto status = look_for_cover(home, one.looks_at)) return *status;
  one.looked_in = generation;
  if (is_there()) return Status::ok;
  if (has_looked(home)) return Status::lost;
  begin_look(one);
  return Status::busy;
}

void State::begin_look(Home& one) noexcept {
  one.looked_in = UINT64_MAX;
  one.looks_at = 0;
  one.skips = false;
  one.covers.clear();
}

/// A member that is not connected may have no store at all.
bool State::has_looked(Rank home) const noexcept {
  const Home& one = homes[home];
  return one.looked_in == progress.generation() &&
         !(one.skips && fabric.now_ns() - one.looks_since_ns < kConnectNs);
}

std::optional<Status> State::look_for_cover(Rank home, Rank at) noexcept {
  Home& one = homes[home];
  const Home& other = homes[at];
  if (at == fabric.rank() || is_gone(at) || other.is_client) return std::nullopt;
  if (at >= members && !fabric.connected(at, index.id())) {
    one.skips = one.skips || progress.contains(at);  // else no member has that rank yet
    return std::nullopt;
  }
  const Status known = know_index(at);
  if (known == Status::under_way) return known;
  if (known == Status::lost) return Status::busy;
  if (known != Status::ok) return std::nullopt;
  one.look.reset();
  one.is_looking =
      fabric
          .post(read(at, redo.id(), gained_at(other.ranks, home), &one.gained, kWordBytes)
                    .notify(one.look))
          .all();
  return Status::under_way;
}

Rank State::known_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash), place = first_home_of(hash);
  return has_copies() || !progress.is_gone(place) ? place : home;
}

void State::learn_move(Rank home, std::uint64_t below, Rank to) noexcept {
  if (to >= places || to == home || below <= homes[home].moved_below) return;
  homes[home].moved_below = below;
  homes[home].moved_to = to;
  has_changed_homes = true;
  // Whether a home that takes over has these positions, it has said before they moved to it.
  for (Home& one : homes) one.covered_in = one.covered_read_in = UINT64_MAX;
}

/// Chains move in the order of their positions. Whether a home can have written that depth.
bool State::learn_departure(Rank home, std::uint64_t position, std::uint64_t depth) noexcept {
  const IndexShape& shape = homes[home].shape;
  const std::uint64_t before = departed_depth::depth(depth);
  const Rank to = departed_depth::to(depth);
  if (!shape.is_depth(before) || to >= places || to == home) return false;
  learn_move(home, shape.end_of(position, static_cast<std::uint32_t>(before)), to);
  return has_moved(home, position);
}

/// At the beginning, and when the members have changed.
void State::look_at_homes() noexcept {
  for (Rank rank = 0; rank < members; ++rank)
    if (!progress.contains(rank)) has_changed_homes = true;
}

std::size_t State::take_told() noexcept {
  std::uint64_t& told = word_at(index.memory().data() + kToldAt);
  const std::uint64_t word = memory::load(told);
  if (word == 0) return 0;
  const Rank left = told_word::left(word);
  if (left < places) learn_move(left, told_word::below(word), told_word::to(word));
  if (left < places && told_word::is_drained(word)) learn_drained(left, told_word::below(word));
  memory::store(told, 0);
  return 1;
}

std::uint64_t State::covered_below(Rank home, std::uint64_t position,
                                   std::uint64_t end) const noexcept {
  for (const Home& other : homes)
    if (other.moved_below > position) end = std::min(end, other.moved_below);
  if (!progress.is_gone(moved_place(home, position))) return end;
  for (Rank one = 0; one < members; ++one) {
    if (own_gained(one) > position) end = std::min(end, own_gained(one));
    for (const Home::Cover& cover : homes[one].covers)
      if (cover.below > position) end = std::min(end, cover.below);
  }
  return end;
}

double State::own_share() const noexcept {
  const Rank own = fabric.rank();
  std::uint64_t end = own < members ? kAllPositions : 0;
  for (Rank home = 0; home < members && end < kAllPositions; ++home)
    end = std::max(end, own_gained(home));
  const std::uint64_t begin = homes[own].moved_below;
  // One that has no keys yet gets some of them soon.
  if (end <= begin) return 1;
  return static_cast<double>(end - begin) / static_cast<double>(kAllPositions);
}

bool State::has_got_keys(Rank rank) const noexcept {
  return std::ranges::any_of(
      homes, [&](const Home& home) { return home.moved_below != 0 && home.moved_to == rank; });
}

std::uint64_t State::own_gained(Rank home) const noexcept {
  return is_home
             ? memory::load(word_at(redo.memory().data() + gained_at(progress.capacity(), home)))
             : 0;
}
std::uint64_t State::own_stale(Rank home) const noexcept {
  return is_home && has_copies()
             ? memory::load(
                   word_at(redo.memory().data() + stale_at(progress.capacity(), members, home)))
             : 0;
}

bool State::serves(std::uint64_t hash) const noexcept {
  return serves(home_of(hash), IndexShape::position_of(hash));
}
bool State::serves(Rank home, std::uint64_t position) const noexcept {
  const Rank own = fabric.rank();
  if (has_copies()) return first_of(home, position) == own && covers(home, position, own);
  return !has_moved(own, position) && (home == own || position < own_gained(home));
}

/// With two copies, a home makes the second copies of what it has got, though no chain has told it
/// so. While the last chain moves, its lock is held here, too.
void State::learn_own_gains() noexcept {
  const Rank own = fabric.rank();
  for (Rank home = 0; home < members; ++home)
    if (home != own) learn_move(home, own_gained(home), own);
}

/// The entries come first: a member that sees the chain's departure may change a key at the other
/// home, and no call may find the key here then (STO-M2).
State::Dropped State::drop_entries(std::byte* main, std::optional<std::uint64_t> new_depth,
                                   const std::function<bool(std::uint64_t hash)>& goes) {
  Dropped dropped;
  std::vector<std::byte*> slots;
  std::vector<Location> places_freed;
  for (std::byte* const bucket : OwnChain(*this, main))
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::byte* const slot = bucket + i * kSlotBytes;
      const std::uint64_t word = memory::load(word_at(slot + kWordBytes));
      if (slot_word::type_of(word) != SlotType::entry || !goes(memory::load(word_at(slot))))
        continue;
      const Location location = slot_word::location_of(word);
      std::byte* const entry = own_entry(location);
      if (entry == nullptr) continue;
      const std::uint64_t guard = memory::load(word_at(entry));
      memory::store(word_at(entry), guard_of(incarnation_of(guard), EntryState::moved));
      const std::uint64_t lengths = memory::load(word_at(entry + offsetof(EntryHead, value_bytes)));
      ++dropped.keys;
      dropped.bytes += lengths & UINT32_MAX;
      slots.push_back(slot);
      places_freed.push_back(location);
    }
  if (new_depth) memory::store(word_at(main + kDepthAt), *new_depth);
  for (std::byte* const slot : slots) {
    memory::store(word_at(slot + kWordBytes), 0);
    memory::store(word_at(slot), 0);
  }
  for (const Location& location : places_freed) free_later(location);
  return dropped;
}

void State::lose_counts(const Dropped& dropped) noexcept {
  uncounted.keys += dropped.keys;
  uncounted.bytes += dropped.bytes;
}

std::size_t State::correct_counts() noexcept {
  std::size_t done = 0;
  for (auto& [at, gone] :
       {std::pair{kKeysAt, &uncounted.keys}, {kValueBytesAt, &uncounted.bytes}}) {
    if (*gone == 0 ||
        !fabric
             .post(fetch_add(fabric.rank(), index.id(), at, 0 - *gone, nullptr).notify(counts_done))
             .all())
      continue;
    *gone = 0;
    ++done;
  }
  if (uncounted.keys != 0 || uncounted.bytes != 0) look_again_soon();
  return done;
}

}  // namespace dunlin::store
