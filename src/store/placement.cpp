#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
#include "store/state.hpp"

/// Where the keys of a home are once it leaves, with one copy of each (docs/store.md, STO-M1 to
/// STO-M6). The chains of the home say so themselves; what a process has learned of them is kept.
namespace dunlin::store {

using remote::Status;

/// As far as this process has learned.
Rank State::moved_place(Rank home, std::uint64_t position) const noexcept {
  Rank at = home;
  for (std::uint32_t hops = 0; hops < members && has_moved(at, position); ++hops)
    at = homes[at].moved_to;
  return at;
}

/// If that home is gone, the next one in the order of ranks got its keys, or no home did.
Rank State::place_of(Rank home, std::uint64_t position) const noexcept {
  const Rank at = moved_place(home, position);
  if (progress.contains(at)) return at;
  for (std::uint32_t i = 1; i < members; ++i) {
    const Rank rank = (at + i) % members;
    if (progress.contains(rank) && !has_moved(rank, position)) return rank;
  }
  return at;
}

Rank State::known_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash), place = first_home_of(hash);
  const std::uint64_t position = IndexShape::position_of(hash);
  const Home& one = homes[home];
  const bool is_covered = one.looked_in == progress.generation() && covers(one.covered, position);
  return has_copies() || is_covered || place == moved_place(home, position) ? place : home;
}

void State::learn_move(Rank home, std::uint64_t below, Rank to) noexcept {
  if (to >= members || to == home || below <= homes[home].moved_below) return;
  homes[home].moved_below = below;
  homes[home].moved_to = to;
  has_changed_homes = true;
}

/// Chains move in the order of their positions. Whether a home can have written that depth.
bool State::learn_departure(Rank home, std::uint64_t position, std::uint64_t depth) noexcept {
  const IndexShape& shape = homes[home].shape;
  const std::uint64_t before = departed_depth::depth(depth);
  const Rank to = departed_depth::to(depth);
  if (!shape.is_depth(before) || to >= members || to == home) return false;
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
  if (left < members) learn_move(left, kAllPositions, told_word::to(word));
  memory::store(told, 0);
  return 1;
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

/// Waits for what Departure does.
bool State::leaving(StoreOperation& op) noexcept {
  const Status status = departure == nullptr ? Status::not_allowed : departure->status();
  return status == Status::under_way ? false : end(op, status);
}

}  // namespace dunlin::store
