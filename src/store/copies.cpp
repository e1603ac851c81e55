#include "store/copies.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dunlin/fabric/memory.hpp>

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

// --- after a death -------------------------------------------------------------------------------

Copies::Copies(State& state) : state_(state), rescue_(state), raises_(state) {
  members_changed();
  bool all_are_there = true;
  for (Rank rank = 0; rank < state_.members; ++rank)
    all_are_there = all_are_there && state_.progress.contains(rank);
  // All changes of the home before are made here, too, from the first one on.
  const Rank own = state_.fabric.rank();
  if (!all_are_there || own >= state_.members) return;
  const Rank before = own > 0 ? own - 1 : static_cast<Rank>(state_.members - 1);
  std::byte* const words = state_.redo.memory().data();
  const std::uint64_t ranks = state_.progress.capacity();
  memory::store(word_at(words + covered_at(ranks, state_.members, before)),
                covered_word::make(0, kAllPositions));
  memory::store(word_at(words + covered_last_at(ranks, state_.members, before)), kAllPositions);
}
Copies::~Copies() { state_.fabric.abandon(done_); }

bool Copies::lacks_room() const noexcept {
  const std::uint64_t word = memory::load(word_at(state_.index.memory().data() + kCompleteAt));
  return word == (kLacksRoom | state_.progress.generation());
}

bool Copies::complete() const noexcept {
  return is_complete_ && complete_in_ == state_.progress.generation();
}

void Copies::members_changed() {
  asks_ = 0;
  has_asked_ = has_given_ = rescues_ = tells_ = false;
  rescue_.stop();
  raises_.begin();
  state_.fabric.abandon(done_);
  done_.reset();
  not_before_ns_ = 0;
  number_ = 0;
  has_looked_at_locks_ = false;
  prepared_.clear();
  held_.clear();
  lacks_room_ = false;
  has_failed_ = false;
  is_complete_ = false;
  for (Lane& lane : lanes_) {
    lane.keys.clear();
    lane.raises.clear();
  }
}

std::size_t Copies::poll() {
  const std::uint64_t generation = state_.progress.generation();
  if (opened_ >= generation && is_complete_) return 0;
  if (not_before_ns_ != 0 && state_.fabric.now_ns() < not_before_ns_) {
    state_.fabric.wake_at(not_before_ns_);
    return 0;
  }
  not_before_ns_ = 0;
  // Else a chain could go to homes for which nothing is made here.
  if ((state_.departure != nullptr && state_.departure->is_amid_chain()) ||
      (state_.shedding != nullptr && state_.shedding->is_amid_chain())) {
    try_later(kAskAgainNs);
    return 0;
  }
  return opened_ < generation ? open() : restore();
}

/// STO-C2: each member publishes the generation that it knows. One that knows of the death reads
/// nothing any more from the home that is gone. And each passes on what only it has (STO-M12).
std::size_t Copies::open() {
  const std::uint64_t generation = state_.progress.generation();
  if (!has_given_) {
    const State::Home& own = state_.homes[state_.fabric.rank()];
    if (own.moved_below > own.drained_below) {
      if (!rescues_ && (!know_places() || !all_know(false))) return 0;
      if (!rescues_) rescue_.begin();
      rescues_ = true;
      const Status status = rescue_.step();
      if (status == Status::busy) try_later(kTellAgainNs);
      if (status != Status::ok) return 0;
      asks_ = 0;
    }
    memory::store(word_at(state_.index.memory().data() + kGaveAt), generation);
    has_given_ = true;
  }
  if (!know_places() || !all_know(true) || !know_places()) return 0;
  if (waits_for_prepared()) {
    try_later(kAskAgainNs);
    return 0;
  }
  opened_ = generation;
  memory::store(word_at(state_.index.memory().data() + kOpenedAt), generation);
  return 1;
}

/// Where the places of those that are gone have moved to.
bool Copies::know_places() {
  for (const std::uint64_t position : state_.bounds())
    for (Rank rank = 0; rank < state_.members && position < kAllPositions; ++rank) {
      const Status status = state_.find_place(rank, position);
      if (status == Status::busy) try_later(kAskAgainNs);
      if (status == Status::busy || status == Status::under_way) return false;
    }
  return true;
}

bool Copies::all_know(bool that_have_given) {
  const std::uint64_t generation = state_.progress.generation();
  const RegionId index = state_.index.id();
  const auto word = [&](std::uint64_t at) { return words_.at((at - kDrainedAt) / kWordBytes); };
  while (asks_ < state_.progress.capacity()) {
    if (asks_ == state_.fabric.rank() || !state_.progress.contains(asks_) ||
        !state_.fabric.connected(asks_, index)) {
      ++asks_;
      continue;
    }
    if (!has_asked_) {
      done_.reset();
      has_asked_ =
          state_.fabric
              .post(read(asks_, index, kDrainedAt, words_.data(), sizeof words_).notify(done_))
              .all();
      if (!has_asked_) break;
    }
    if (!done_.finished()) return false;
    has_asked_ = false;
    if (done_.failed() || word(kGenerationAt) < generation ||
        (that_have_given && word(kGaveAt) < generation))
      break;
    // How far one has moved its keys: more do not go before all copies are made.
    if (asks_ < state_.places) {
      state_.learn_move(asks_, word(kMovedAt), leave_word::to(word(kLeaveAt)));
      state_.learn_drained(asks_, word(kDrainedAt));
    }
    ++asks_;
  }
  if (asks_ >= state_.progress.capacity()) return true;
  try_later(kAskAgainNs);
  return false;
}

std::uint64_t Copies::lock_of(std::uint64_t number) const noexcept {
  return memory::load(word_at(state_.own_main(number) + kLockAt));
}

/// STO-C5. The first home, which is gone, may have shown what a prepared transaction has written.
bool Copies::waits_for_prepared() {
  Image record;
  if (!has_looked_at_locks_)
    for (std::uint64_t number = 0; number < state_.main_headers(); ++number)
      if (const std::uint64_t lock = lock_of(number);
          lock != 0 && state_.transaction_repair.record_of(lock, record))
        prepared_.push_back({number, lock});
  has_looked_at_locks_ = true;
  std::erase_if(prepared_, [&](const Held& held) { return lock_of(held.number) != held.lock; });
  return !prepared_.empty();
}

/// Of each key that this home holds first; a change that happens meanwhile makes its own. One key
/// of a chain after the other, and some chains at once.
std::size_t Copies::restore() {
  std::size_t done = 0;
  bool all_idle = true;
  for (Lane& lane : lanes_) {
    if (lane.under_way) {
      if (!lane.restoring.finished() || !lane.raising.finished()) {
        all_idle = false;
        continue;
      }
      ++done;
      end(lane);
    }
    while (lane.keys.empty() && lane.raises.empty() && collect_next(lane)) continue;
    if (lane.keys.empty() && lane.raises.empty()) continue;
    all_idle = false;
    begin_next(lane);
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
    complete_in_ = state_.progress.generation();
    if (is_complete_)
      memory::store(word_at(state_.index.memory().data() + kCompleteAt),
                    state_.progress.generation());
    return done;
  }
  if (std::exchange(lacks_room_, false))
    memory::store(word_at(state_.index.memory().data() + kCompleteAt),
                  kLacksRoom | state_.progress.generation());
  has_failed_ = false;
  number_ = 0;
  try_later(kRestoreAgainNs);
  return done;
}

void Copies::begin_next(Lane& lane) {
  lane.under_way = true;
  lane.is_raising = lane.keys.empty();
  if (lane.is_raising) {
    const Raise& raise = lane.raises.back();
    lane.raising = {state_.progress, state_.raise_version({.to = raise.to,
                                                           .first = state_.fabric.rank(),
                                                           .position = raise.from,
                                                           .lock_word = state_.next_lock_word(),
                                                           .version = raise.version})};
    return;
  }
  lane.restoring = state_.begin_change({.kind = Kind::restore},
                                       std::span<const std::byte>(lane.keys.back()), {});
  lane.keys.pop_back();
}

void Copies::end(Lane& lane) {
  lane.under_way = false;
  const Status status = lane.is_raising ? lane.raising.status() : lane.restoring.status();
  lacks_room_ = lacks_room_ || status == Status::no_room || status == Status::full;
  if (!lane.is_raising) {
    if (status == Status::ok)
      ++state_.counters.copies_restored;
    else
      has_failed_ = true;
    return;
  }
  if (lane.raises.empty()) return;  // the members have changed meanwhile
  Raise& raise = lane.raises.back();
  if (status == Status::ok) raise.from = lane.raising.result().below;
  // A lock there that has the lower rank is tried again.
  if (status != Status::ok && status != Status::busy) has_failed_ = true;
  if (raise.from >= raise.below || has_failed_) lane.raises.pop_back();
}

void Copies::try_later(std::uint64_t ns) noexcept {
  not_before_ns_ = state_.fabric.now_ns() + ns;
  state_.fabric.wake_at(not_before_ns_);
}

/// They have a copy of all keys of which this home is the first one: they may take over.
bool Copies::tell_second_homes() {
  if (!tells_) {
    raises_.begin();
    for (const KeyGroup& group : state_.groups_served({})) {
      if (!group.now.second) continue;
      const Rank second = *group.now.second;
      if (state_.know_index(second) != Status::ok) {  // one that is not there yet
        try_later(kTellAgainNs);
        return false;
      }
      state_.claim(raises_, second, group.home, group.from, group.below);
    }
    tells_ = true;
  }
  const Status status = raises_.step();
  if (status == Status::busy) {
    tells_ = false;
    try_later(kTellAgainNs);
  }
  return status == Status::ok;
}

/// STO-C4. What holds a chain now may have begun when the second home was another one. Returns
/// whether there was a chain to look at.
bool Copies::collect_next(Lane& lane) {
  if (number_ == 0) groups_ = state_.groups_served({});
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
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  const std::uint64_t from = shape.begin_of(number);
  const std::uint64_t below = shape.end_of(from, shape.depth_of(from));
  const std::uint64_t version = memory::load(word_at(main + kVersionAt));
  if (version == 0) return;
  for (const KeyGroup& group : groups_)
    if (group.now.second && group.from < below && group.below > from &&
        std::ranges::none_of(lane.raises,
                             [&](const Raise& one) { return one.to == *group.now.second; }))
      lane.raises.push_back(
          {.to = *group.now.second, .from = from, .below = below, .version = version});
}

}  // namespace dunlin::store
