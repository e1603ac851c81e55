#include <algorithm>
#include <optional>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
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
  return !progress.contains(rank) || (rank < places && homes[rank].withdrawn);
}

/// If that home is gone, a member that has its keys, as far as they have been asked.
Rank State::place_of(Rank home, std::uint64_t position) const noexcept {
  const Rank at = moved_place(home, position);
  if (progress.contains(at)) return at;
  const Rank own = fabric.rank();
  if (is_home && position < own_covered(home))
    if (const Rank place = moved_place(own, position); progress.contains(place)) return place;
  if (homes[home].looked_in != progress.generation()) return at;
  for (const Home::Cover& cover : homes[home].covers)
    if (position < cover.below)
      if (const Rank place = moved_place(cover.by, position); progress.contains(place))
        return place;
  return at;
}

/// One member after the other. Those that hold keys from the beginning are waited for.
Status State::find_place(Rank home, std::uint64_t position) noexcept {
  const auto is_there = [&] { return progress.contains(place_of(home, position)); };
  if (is_there()) return Status::ok;
  Home& one = homes[home];
  const std::uint64_t generation = progress.generation();
  if (has_looked(home)) return Status::lost;
  if (one.is_looking) {
    if (!one.look.finished()) return Status::under_way;
    one.is_looking = false;
    if (one.look.failed()) return Status::busy;  // until the members agree
    if (one.looks_in == generation && one.covered != 0)
      one.covers.push_back({one.looks_at, one.covered});
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
  if (at == fabric.rank() || !progress.contains(at) || other.withdrawn || other.is_client)
    return std::nullopt;
  if (at >= members && !fabric.connected(at, index.id())) {
    one.skips = true;
    return std::nullopt;
  }
  const Status known = know_index(at);
  if (known == Status::under_way) return known;
  if (known == Status::lost) return Status::busy;
  if (known != Status::ok) return std::nullopt;
  one.look.reset();
  one.is_looking =
      fabric
          .post(read(at, redo.id(), covered_at(other.ranks, home), &one.covered, kWordBytes)
                    .notify(one.look))
          .all();
  return Status::under_way;
}

Rank State::known_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash), place = first_home_of(hash);
  return has_copies() || progress.contains(place) ? place : home;
}

void State::learn_move(Rank home, std::uint64_t below, Rank to) noexcept {
  if (to >= places || to == home || below <= homes[home].moved_below) return;
  homes[home].moved_below = below;
  homes[home].moved_to = to;
  has_changed_homes = true;
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

/// The chain has departed: the call begins again where its keys are now.
bool State::follow(StoreOperation& op, std::uint64_t depth) noexcept {
  Work& work = *op.work_;
  if (!learn_departure(work.home, IndexShape::position_of(work.hash), depth))
    return end(op, Status::out_of_range);
  if (is_hold(work.kind)) return end(op, Status::conflict);
  if (is_copy(work.kind)) return end(op, Status::lost);
  work.stage = Stage::attach;
  if (!work.locked) return true;
  work.has_moved = true;
  build_unlock(work, false);
  return commit(op);
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
  memory::store(told, 0);
  return 1;
}

std::uint64_t State::covered_below(Rank home, std::uint64_t position,
                                   std::uint64_t end) const noexcept {
  for (const Home& other : homes)
    if (other.moved_below > position) end = std::min(end, other.moved_below);
  if (progress.contains(moved_place(home, position))) return end;
  if (is_home && own_covered(home) > position) end = std::min(end, own_covered(home));
  for (const Home::Cover& cover : homes[home].covers)
    if (cover.below > position) end = std::min(end, cover.below);
  return end;
}

double State::own_share() const noexcept {
  const Rank own = fabric.rank();
  std::uint64_t end = own < members ? kAllPositions : 0;
  for (Rank home = 0; home < members && end < kAllPositions; ++home)
    end = std::max(end, own_covered(home));
  const std::uint64_t begin = homes[own].moved_below;
  // One that has no keys yet gets some of them soon.
  if (end <= begin) return 1;
  return static_cast<double>(end - begin) / static_cast<double>(kAllPositions);
}

bool State::has_got_keys(Rank rank) const noexcept {
  return std::ranges::any_of(
      homes, [&](const Home& home) { return home.moved_below != 0 && home.moved_to == rank; });
}

std::uint64_t State::own_covered(Rank home) const noexcept {
  return memory::load(word_at(redo.memory().data() + covered_at(progress.capacity(), home)));
}

bool State::serves(std::uint64_t hash) const noexcept {
  if (has_copies()) return copies->serves(hash);
  const Rank own = fabric.rank(), home = home_of(hash);
  const std::uint64_t position = IndexShape::position_of(hash);
  return !has_moved(own, position) && (home == own || position < own_covered(home));
}

/// Of a transaction: it finds them at other homes when it is tried again.
bool State::has_moved_keys(const TransactionWork& work) const noexcept {
  const auto is_elsewhere = [&](std::uint64_t hash, Rank at) {
    const std::uint64_t position = IndexShape::position_of(hash);
    return has_moved(home_of(hash), position) && place_of(home_of(hash), position) != at;
  };
  return !has_copies() &&
         (std::ranges::any_of(work.order,
                              [&](const TransactionWrite* write) {
                                return is_elsewhere(write->hash, write->home);
                              }) ||
          std::any_of(work.reads.begin(),
                      work.reads.begin() + static_cast<std::ptrdiff_t>(work.used_reads),
                      [&](const auto& one) {
                        const Work& read_work = *one->operation->work_;
                        return is_elsewhere(read_work.hash, read_work.home);
                      }));
}

void State::begin_leave(StoreOperation& op) noexcept {
  if (departure != nullptr && !progress.stopped()) departure->begin();
  begin(op, Kind::leave, std::string_view(), {}, kNoExpiry, 0, nullptr);
}

void State::begin_take(StoreOperation& op) noexcept {
  if (arrival != nullptr && !progress.stopped()) arrival->begin();
  begin(op, Kind::take_keys, std::string_view(), {}, kNoExpiry, 0, nullptr);
}

/// A part of a move: at the home that gets the keys.
void State::begin_move(StoreOperation& op, Kind kind, StoreKey key,
                       std::span<const std::byte> value, std::uint64_t ttl_ns,
                       std::uint64_t version, Rank to) noexcept {
  prepare(op, kind, key, value, ttl_ns, version, nullptr);
  op.work_->home = to;
  op.work_->first = fabric.rank();
  op.start();
}

/// Of the chain there that has this position; none lower than that one is given there any more.
void State::begin_raise(StoreOperation& op, std::uint64_t position, std::uint64_t version,
                        Rank to) noexcept {
  prepare(op, Kind::raise_copy, std::string_view(), {}, kNoExpiry, version, nullptr);
  op.work_->hash = position;
  op.work_->home = to;
  op.work_->first = fabric.rank();
  op.start();
}

/// The first position behind the chain whose version was raised.
std::uint64_t State::raised_below(const StoreOperation& op) const noexcept {
  const Work& work = *op.work_;
  return homes[work.home].shape.end_of(work.hash, static_cast<std::uint32_t>(work.header.depth));
}

/// Waits for what Departure, or Arrival, does.
bool State::leaving(StoreOperation& op) noexcept {
  Status status = Status::not_allowed;
  if (op.work_->kind == Kind::leave && departure != nullptr) status = departure->status();
  if (op.work_->kind == Kind::take_keys && arrival != nullptr) status = arrival->status();
  return status == Status::under_way ? false : end(op, status);
}

}  // namespace dunlin::store
