#include "store/copies.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
#include "store/own_chain.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Status;

namespace {

constexpr std::uint64_t kAskAgainNs = 20'000;
constexpr std::uint64_t kTellAgainNs = 100'000;
/// A second home without room is tried again.
constexpr std::uint64_t kRestoreAgainNs = 1'000'000'000;

}  // namespace

Copies::Copies(State& state) : state_(state) {
  members_changed();
  bool all_are_there = true;
  for (Rank rank = 0; rank < state_.members; ++rank)
    all_are_there = all_are_there && state_.progress.contains(rank);
  // All changes of the home before are made here, too, from the first one on.
  const Rank own = state_.fabric.rank();
  const Rank before = own > 0 ? own - 1 : state_.members - 1;
  if (all_are_there)
    memory::store(
        word_at(state_.redo.memory().data() + covered_at(state_.progress.capacity(), before)),
        state_.progress.generation());
}
Copies::~Copies() { state_.fabric.abandon(done_); }

void Copies::members_changed() {
  asks_ = 0;
  has_asked_ = false;
  state_.fabric.abandon(done_);
  done_.reset();
  not_before_ns_ = 0;
  has_looked_at_locks_ = false;
  prepared_.clear();
  is_complete_ = false;
  only_further_ = false;
  begin_restoring();
}

void Copies::begin_restoring() noexcept {
  number_ = 0;
  held_.clear();
  raises_ = false;
  raise_at_ = 0;
  raised_ = 0;
  told_ = 0;
  tells_of_departing_ = false;
  has_failed_ = has_no_room_ = false;
  for (Lane& lane : lanes_) {
    lane.keys.clear();
    lane.raise = {};
    lane.is_stale = lane.under_way;
  }
}

/// All members make changes at a further home, too, as this one leaves.
void Copies::make_further(Rank leaves, std::uint64_t round) {
  if (round_ == round && leaves_ == leaves) return;
  leaves_ = leaves;
  round_ = round;
  publish_ready(0);
  // A home that has got some of its keys meanwhile has perhaps made no copies of these.
  only_further_ = std::exchange(is_complete_, false) && state_.homes[leaves].moved_below == 0;
  begin_restoring();
  not_before_ns_ = 0;
  state_.look_again_soon();
}

/// This home may be the first one of its keys now. Those behind it have them, and are told.
void Copies::look_at_departed(Rank home) {
  if (state_.first_from(home, 0) != state_.fabric.rank()) return;
  told_ = 0;
  is_complete_ = false;
  not_before_ns_ = 0;
  state_.look_again_soon();
}

/// Of this home: all others have made their copies, too.
void Copies::tell_of_departing() {
  publish_ready(0);
  tells_of_departing_ = true;
  told_ = 0;
  is_complete_ = false;
  not_before_ns_ = 0;
  state_.look_again_soon();
}

void Copies::publish_ready(std::uint64_t word) noexcept {
  memory::store(word_at(state_.index.memory().data() + kReadyAt), word);
}

std::size_t Copies::poll() {
  const std::uint64_t generation = state_.progress.generation();
  if (opened_ >= generation && is_complete_) return 0;
  if (not_before_ns_ != 0 && state_.fabric.now_ns() < not_before_ns_) {
    state_.fabric.wake_at(not_before_ns_);
    return 0;
  }
  not_before_ns_ = 0;
  return opened_ < generation ? open() : restore();
}

/// STO-C2: each member publishes the generation that it knows. One that knows of the death reads
/// nothing any more from the home that is gone.
std::size_t Copies::open() {
  const std::uint64_t generation = state_.progress.generation();
  const RegionId index = state_.index.id();
  while (asks_ < state_.progress.capacity()) {
    if (asks_ == state_.fabric.rank() || !state_.progress.contains(asks_) ||
        !state_.fabric.connected(asks_, index)) {
      ++asks_;
      continue;
    }
    if (!has_asked_) {
      done_.reset();
      has_asked_ =
          state_.fabric.post(read(asks_, index, kGenerationAt, &word_, kWordBytes).notify(done_))
              .all();
      if (!has_asked_) break;
    }
    if (!done_.finished()) return 0;
    has_asked_ = false;
    if (done_.failed() || word_ < generation) break;
    ++asks_;
  }
  if (asks_ < state_.progress.capacity() || waits_for_prepared()) {
    try_later(kAskAgainNs);
    return 0;
  }
  opened_ = generation;
  memory::store(word_at(state_.index.memory().data() + kOpenedAt), generation);
  return 1;
}

std::uint64_t Copies::lock_of(std::uint64_t number) const noexcept {
  return memory::load(word_at(state_.own_main(number) + kLockAt));
}

/// STO-C5. The first home, which is gone, may have shown what a prepared transaction has written.
bool Copies::waits_for_prepared() {
  Image record;
  if (!has_looked_at_locks_)
    for (std::uint64_t number = 0; number < state_.main_headers(); ++number)
      if (const std::uint64_t lock = lock_of(number); lock != 0 && state_.record_of(lock, record))
        prepared_.push_back({number, lock});
  has_looked_at_locks_ = true;
  std::erase_if(prepared_, [&](const Held& held) { return lock_of(held.number) != held.lock; });
  return !prepared_.empty() && !is_injected(FaultInjection::home_opens_at_once);
}

/// Of each key that this home holds first; a change that happens meanwhile makes its own. One key
/// of a chain after the other, and some chains at once. Then the versions of all chains.
std::size_t Copies::restore() {
  std::size_t done = 0;
  bool all_idle = true;
  for (Lane& lane : lanes_) {
    if (lane.under_way && lane.operation->finished()) {
      end_of(lane);
      ++done;
    }
    if (!lane.under_way) begin_next(lane);
    all_idle = all_idle && !lane.under_way;
  }
  if (!all_idle) {
    state_.fabric.wake_at(state_.fabric.now_ns());
    return done;
  }
  if (!held_.empty()) {
    try_later(kAskAgainNs);
    return done;
  }
  if (!raises_ && !has_failed_) {
    raises_ = true;
    state_.fabric.wake_at(state_.fabric.now_ns());
    return done + 1;
  }
  if (!has_failed_) {
    is_complete_ = tell_other_homes();
    if (is_complete_ && round_ != 0)
      publish_ready(ready_word::make(leaves_, round_, state_.progress.generation()));
    if (!is_complete_) try_later(kTellAgainNs);  // one that is not there yet must not keep us awake
    return done;
  }
  if (has_no_room_) publish_ready(ready_word::kHasNoRoom | ready_word::make(leaves_, round_, 0));
  begin_restoring();
  try_later(kRestoreAgainNs);
  return done;
}

void Copies::end_of(Lane& lane) noexcept {
  lane.under_way = false;
  if (std::exchange(lane.is_stale, false)) return;
  const Status status = lane.operation->status();
  if (status != Status::ok) {
    if (lane.raises() && status == Status::busy) return;  // tries again
    has_failed_ = true;
    has_no_room_ = has_no_room_ || status == Status::no_room || status == Status::full;
    lane.raise = {};
    return;
  }
  if (lane.raises())
    lane.raise.position = state_.raised_below(*lane.operation);
  else
    ++state_.seen.copies_restored;
}

void Copies::begin_next(Lane& lane) {
  if (raises_) {
    if (!lane.raises() && !raise_next(lane)) return;
  } else {
    while (lane.keys.empty() && collect_next(lane)) continue;
    if (lane.keys.empty()) return;
  }
  if (lane.operation == nullptr) lane.operation = std::make_unique<StoreOperation>(*state_.store);
  lane.under_way = true;
  if (lane.raises())
    return state_.begin_raise(*lane.operation, lane.raise.position, lane.raise.version,
                              lane.raise.to);
  state_.begin(*lane.operation, Kind::restore, std::span<const std::byte>(lane.keys.back()), {},
               kNoExpiry, 0, nullptr);
  lane.keys.pop_back();
}

/// STO-M3, for keys that were erased before another home got the chain's: one of the homes behind
/// this one, for one chain after the other.
bool Copies::raise_next(Lane& lane) noexcept {
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  while (raise_at_ < kAllPositions) {
    const CopyHomes to = state_.copies_behind(state_.fabric.rank(), raise_at_);
    const std::uint64_t end = shape.end_of(raise_at_, shape.depth_of(raise_at_));
    const std::uint64_t version =
        memory::load(word_at(state_.own_main(shape.number_of(raise_at_)) + kVersionAt));
    if (version != 0 && raised_ < to.many && makes_copies(to)) {
      lane.raise = {raise_at_, end, version, to.ranks.at(raised_++)};
      return true;
    }
    raise_at_ = end;
    raised_ = 0;
  }
  return false;
}

/// If all keys had their second copies, only those that have three homes get further ones.
bool Copies::makes_copies(const CopyHomes& to) const noexcept {
  return to.many > (only_further_ ? 1U : 0U);
}

void Copies::try_later(std::uint64_t ns) noexcept {
  not_before_ns_ = state_.fabric.now_ns() + ns;
  state_.fabric.wake_at(not_before_ns_);
}

/// A further home has all keys only if they were copied when all members knew of the leave.
CopyHomes Copies::homes_with_all(CopyHomes behind) const noexcept {
  const bool all_know =
      round_ != 0 && (leaves_ == state_.fabric.rank() || leaves_ == behind.ranks[0]);
  if (!all_know) behind.many = std::min<std::size_t>(behind.many, 1);
  return behind;
}

/// They have a copy of all keys of which this home is the first one: they may take over. If some of
/// its keys have departed, and others not, the homes that have got some must have made theirs.
bool Copies::tell_other_homes() {
  constexpr std::uint64_t kLast = kAllPositions - 1;
  const Rank own = state_.fabric.rank();
  covered_ = state_.progress.generation();
  if (told_ == 0) has_skipped_ = false;
  for (; told_ < state_.members; ++told_) {
    if (state_.first_from(told_, kLast) != own) continue;
    if (state_.first_from(told_, 0) != own && !tells_of_departing_) {
      has_skipped_ = true;
      continue;
    }
    if (told_ != own && state_.own_covered(told_) == 0) continue;  // nor has this one
    for (const Rank other : homes_with_all(state_.copies_behind(own, kLast))) {
      if (state_.know_index(other) != Status::ok) return false;
      const Operation tell =
          write(other, state_.redo.id(), covered_at(state_.homes[other].ranks, told_), &covered_,
                kWordBytes);
      if (!state_.fabric.post(tell.notify(done_, Notify::remotely)).all()) return false;
    }
  }
  if (!done_.finished()) return false;
  const bool all_know = !done_.failed();
  if (!all_know) told_ = 0;  // all of them again, unless the members agree that one is gone
  done_.reset();
  return all_know;
}

bool Copies::serves(std::uint64_t hash) const noexcept {
  const Rank own = state_.fabric.rank(), home = state_.home_of(hash);
  return state_.first_home_of(hash) == own && (home == own || state_.own_covered(home) != 0);
}

/// STO-C4. What holds a chain now may have begun when the second home was another one. Returns
/// whether there was a chain to look at.
bool Copies::collect_next(Lane& lane) {
  if (number_ < state_.main_headers()) {
    const std::uint64_t number = number_++, lock = lock_of(number);
    if (lock != 0)
      held_.push_back({number, lock});
    else
      collect(lane, number);
    return true;
  }
  const auto done = std::ranges::find_if(
      held_, [&](const Held& held) { return lock_of(held.number) != held.lock; });
  if (done == held_.end()) return false;
  const std::uint64_t number = done->number;
  held_.erase(done);
  collect(lane, number);
  return true;
}

void Copies::collect(Lane& lane, std::uint64_t number) {
  std::byte* const main = state_.own_main(number);
  for (const std::byte* const bucket : OwnChain(state_, main))
    state_.see_bucket(main, bucket, [&](const StoreEntry& entry) {
      const std::uint64_t hash = hash_of(entry.key);
      if (serves(hash) && makes_copies(state_.copies_of(hash)))
        lane.keys.emplace_back(entry.key.begin(), entry.key.end());
    });
}

}  // namespace dunlin::store
