#include "store/copies.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
#include "store/own_chain.hpp"
#include "store/state.hpp"

/// Second copies. A change takes the lock at the key's first home, makes the change at the second
/// one, and then at the first one, where all gets look.
namespace dunlin::store {

using remote::Status;

namespace {

constexpr std::uint64_t kAskAgainNs = 20'000;
constexpr std::uint64_t kTellAgainNs = 100'000;
/// A second home without room is tried again.
constexpr std::uint64_t kRestoreAgainNs = 1'000'000'000;

}  // namespace

// --- where a key is ------------------------------------------------------------------------------

Rank State::first_from(Rank home) const noexcept {
  for (std::uint32_t i = 0; i < members; ++i)
    if (const Rank rank = (home + i) % members; progress.contains(rank)) return rank;
  return home;
}

Rank State::first_home_of(std::uint64_t hash) const noexcept {
  const Rank home = home_of(hash);
  if (has_copies()) return first_from(home);
  return has_changed_homes ? place_of(home, IndexShape::position_of(hash)) : home;
}

std::optional<Rank> State::second_home_of(std::uint64_t hash) const noexcept {
  const Rank first = first_home_of(hash), second = first_from((first + 1) % members);
  if (!has_copies() || second == first || !progress.contains(second)) return std::nullopt;
  return second;
}

bool State::is_open(Rank rank) const noexcept {
  const std::uint64_t opened =
      rank == fabric.rank() && copies != nullptr ? copies->opened() : homes[rank].opened;
  return opened >= progress.generation() || is_injected(FaultInjection::home_opens_at_once);
}

bool State::has_another_home(Rank home, std::uint64_t position, Rank gone) const noexcept {
  if (is_lost(home, position)) return false;
  if (!has_copies()) return place_of(home, position) != gone || !homes[gone].withdrawn;
  if (homes[gone].withdrawn) return false;
  return progress.contains(gone) || progress.contains(first_from(home));
}

bool State::is_lost(Rank home, std::uint64_t position) const noexcept {
  if (!has_copies() && progress.contains(place_of(home, position))) return false;
  return has_looked(home) && (!has_copies() || homes[home].covered == 0);
}

Status State::know_home(Rank home, Rank at) noexcept {
  const bool takes_over = has_copies() && at != home;
  if (takes_over && !is_open(at)) look_at_index_again(at);
  const Status known = know_index(at);
  if (known != Status::ok || !takes_over) return known;
  if (!is_open(at)) return Status::busy;
  Home& one = homes[home];
  const std::uint64_t generation = progress.generation();
  if (one.looked_in == generation) return one.covered != 0 ? Status::ok : Status::lost;
  if (!one.is_looking) {
    one.look.reset();
    one.is_looking =
        fabric
            .post(read(at, redo.id(), covered_at(homes[at].ranks, home), &one.covered, kWordBytes)
                      .notify(one.look))
            .all();
    one.looks_in = generation;
    if (!one.is_looking) return Status::under_way;
  }
  if (!one.look.finished()) return Status::under_way;
  one.is_looking = false;
  if (one.look.failed() || one.looks_in != generation) return Status::busy;
  one.looked_in = generation;
  return one.covered != 0 ? Status::ok : Status::lost;
}

// --- a change at the second home -----------------------------------------------------------------

/// The batch for the first home is ready, under the lock of the key's chain there.
bool State::replicate(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (!has_copies() || is_copy(work.kind)) return commit(op);
  work.stage = Stage::copy;
  return true;
}

bool State::begin_copy(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (fault(work.home) != Status::ok) return end(op, fault(work.home));
  const std::optional<Rank> second = second_home_of(work.hash);
  if (!second || is_injected(FaultInjection::change_is_not_copied)) return commit(op);
  if (idle_copies.empty()) {
    copy_operations.push_back(std::make_unique<StoreOperation>(*store));
    idle_copies.push_back(copy_operations.back().get());
  }
  work.copy = idle_copies.back();
  idle_copies.pop_back();
  const bool restores = work.kind == Kind::restore;
  const bool erases = !restores && work.new_slot.word == 0;
  const std::span<const std::byte> value =
      restores ? op.value()
               : std::span<const std::byte>(work.out.data() + kEntryHeadBytes + work.key_bytes,
                                            erases ? 0 : work.value_bytes);
  const std::uint64_t expiry = restores ? work.head.expiry_ns : head_of(work.out.data()).expiry_ns;
  const std::uint64_t ttl =
      erases || expiry == 0 ? kNoExpiry : std::max<std::uint64_t>(ttl_of(work.home, expiry), 1);
  StoreOperation& copy = *work.copy;
  prepare(copy, erases ? Kind::copy_erase : Kind::copy_put, work.key_span(), value, ttl,
          restores ? work.head.version : work.next_version, nullptr);
  copy.work_->home = work.second = *second;
  copy.work_->first = work.home;
  work.stage = Stage::copying;
  copy.start();
  return true;
}

bool State::copy_ended(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (!work.copy->finished()) return false;
  const Status status = work.copy->status();
  drop_copy(work);
  switch (status) {
    case Status::ok:
      work.is_copied = true;
      return commit(op);
    case Status::lost:  // another member may become the second home
      work.stage = Stage::copy;
      if (!progress.contains(work.second)) return true;
      begin_rest(work.rest);
      return false;
    case Status::conflict:  // the first home is gone
      return end(op, Status::lost);
    case Status::busy:  // gives the lock back, so that no changes wait for each other in a circle
      work.steps = 0;
      release_record(work);
      op.found_ = op.changed_ = false;
      op.version_ = 0;
      work.has_moved = work.gives_way = true;
      build_unlock(work, false);
      return commit(op);
    default:
      work.steps = 0;
      release_record(work);
      return leave(op, status);
  }
}

void State::drop_copy(Work& work) noexcept {
  if (work.copy == nullptr) return;
  work.copy->abandon();
  idle_copies.push_back(std::exchange(work.copy, nullptr));
}

/// What the second home has is the key's value once the members agree that the first one is gone.
bool State::fail_over(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const bool may_stay = has_copies() || first_home_of(work.hash) == work.home;
  if (progress.contains(work.home) && may_stay) {
    begin_rest(work.rest);
    return false;
  }
  release_record(work);
  cancel_blocks(work);
  if (work.is_copied) return end(op, Status::ok);
  rewind(op);
  return true;
}

// --- after a death -------------------------------------------------------------------------------

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
  number_ = 0;
  told_ = 0;
  has_looked_at_locks_ = false;
  prepared_.clear();
  held_.clear();
  has_failed_ = false;
  is_complete_ = false;
  for (Lane& lane : lanes_) lane.keys.clear();
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
/// of a chain after the other, and some chains at once.
std::size_t Copies::restore() {
  std::size_t done = 0;
  bool all_idle = true;
  for (Lane& lane : lanes_) {
    if (lane.under_way) {
      if (!lane.operation->finished()) {
        all_idle = false;
        continue;
      }
      lane.under_way = false;
      ++done;
      if (lane.operation->status() == Status::ok)
        ++state_.seen.copies_restored;
      else
        has_failed_ = true;
    }
    while (lane.keys.empty() && collect_next(lane)) continue;
    if (lane.keys.empty()) continue;
    if (lane.operation == nullptr) lane.operation = std::make_unique<StoreOperation>(*state_.store);
    lane.under_way = true;
    all_idle = false;
    state_.begin(*lane.operation, Kind::restore, std::span<const std::byte>(lane.keys.back()), {},
                 kNoExpiry, 0, nullptr);
    lane.keys.pop_back();
  }
  if (!all_idle) {
    state_.fabric.wake_at(state_.fabric.now_ns());
    return done;
  }
  if (!held_.empty()) {
    try_later(kAskAgainNs);
    return done;
  }
  if (!has_failed_) {
    is_complete_ = tell_second_homes();
    if (!is_complete_) try_later(kTellAgainNs);  // one that is not there yet must not keep us awake
    return done;
  }
  has_failed_ = false;
  number_ = 0;
  told_ = 0;
  try_later(kRestoreAgainNs);
  return done;
}

void Copies::try_later(std::uint64_t ns) noexcept {
  not_before_ns_ = state_.fabric.now_ns() + ns;
  state_.fabric.wake_at(not_before_ns_);
}

/// They have a copy of all keys of which this home is the first one: they may take over.
bool Copies::tell_second_homes() {
  covered_ = state_.progress.generation();
  for (; told_ < state_.members; ++told_) {
    if (state_.first_from(told_) != state_.fabric.rank()) continue;
    if (told_ != state_.fabric.rank() && state_.own_covered(told_) == 0)
      continue;  // nor has this one
    const Rank second = state_.first_from((state_.fabric.rank() + 1) % state_.members);
    if (second == state_.fabric.rank()) continue;
    if (state_.know_index(second) != Status::ok) return false;
    const Operation tell =
        write(second, state_.redo.id(), covered_at(state_.homes[second].ranks, told_), &covered_,
              kWordBytes);
    if (!state_.fabric.post(tell.notify(done_, Notify::remotely)).all()) return false;
  }
  if (!done_.finished()) return false;
  const bool all_know = !done_.failed();
  if (!all_know) told_ = 0;  // all of them again, unless the members agree that one is gone
  done_.reset();
  return all_know;
}

bool Copies::serves(std::uint64_t hash) const noexcept {
  const Rank own = state_.fabric.rank(), home = state_.home_of(hash);
  return state_.first_from(home) == own && (home == own || state_.own_covered(home) != 0);
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
      if (state_.first_home_of(hash) == state_.fabric.rank() && state_.second_home_of(hash))
        lane.keys.emplace_back(entry.key.begin(), entry.key.end());
    });
}

}  // namespace dunlin::store
