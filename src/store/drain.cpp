#include "store/drain.hpp"

#include <atomic>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
#include "store/own_chain.hpp"
#include "store/state.hpp"
#include "store/steps.hpp"

namespace dunlin::store {

using remote::Status;

Drain::~Drain() { state_.fabric.abandon(done_); }

std::byte* Drain::main() const noexcept {
  return state_.own_main(state_.homes[state_.fabric.rank()].shape.number_of(position_));
}

void Drain::publish(std::uint64_t state) noexcept {
  memory::store(word_at(state_.index.memory().data() + kLeaveAt), leave_word::make(state, to_));
}

/// Again from that stage on, a little later.
bool Drain::rest(Stage next) {
  stage_ = next;
  state_.begin_rest(rest_);
  return false;
}

void Drain::unlock(std::uint64_t version) noexcept {
  memory::store(word_at(main() + kVersionAt), version);
  memory::store(word_at(main() + kLockAt), 0);
}

/// STO-M9. The copies were made for other members.
bool Drain::have_changed() const noexcept { return generation_ != state_.progress.generation(); }

void Drain::begin() {
  if (status_ == Status::under_way || status_ == Status::ok) return;
  if (status_ == Status::no_room) generation_ = UINT64_MAX;  // there may be room: a further round
  status_ = Status::under_way;
  if (stage_ == Stage::ended) stage_ = Stage::claim;
  state_.look_again_soon();
}

bool Drain::end(Status status) {
  const Rank own = state_.fabric.rank();
  const bool has_left = state_.has_given_all(own);
  publish((has_left ? leave_word::kHasLeft : 0) |
          (state_.homes[own].leaves ? leave_word::kLeaves : 0));
  stage_ = Stage::ended;
  status_ = status;
  state_.growth->look_at_share();
  return false;
}

std::size_t Drain::poll() {
  if (stage_ == Stage::ended || state_.store == nullptr || state_.progress.stopped()) return 0;
  return take_steps(
      state_, rest_, [&] { return stage_ != Stage::ended; }, [&] { return step(); });
}

bool Drain::step() {
  switch (stage_) {
    case Stage::claim:
      return claim();
    case Stage::turn:
      return take_turn();
    case Stage::tell_leaves:
    case Stage::tell_moved:
    case Stage::tell_round:
    case Stage::tell_left:
      return has_told();
    case Stage::look:
      return look();
    case Stage::looked:
      return looked();
    case Stage::settle:
      if (!state_.growth->is_idle()) return rest(Stage::settle);
      stage_ = Stage::lock;
      return true;
    case Stage::lock:
      return lock();
    case Stage::locked:
      return locked();
    case Stage::gone:
      if (!take_from_counters(state_, gone_)) return rest(Stage::gone);
      stage_ = Stage::lock;
      return true;
    case Stage::ended:
      return false;
  }
  return false;
}

// --- a further copy of each key ------------------------------------------------------------------

bool Drain::claim() {
  if (!state_.may_leave()) return end(Status::not_allowed);
  publish(leave_word::kMoves |
          (state_.homes[state_.fabric.rank()].leaves ? leave_word::kLeaves : 0));
  // STO-M4: its own word before it reads those of the others.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  turn_.begin();
  stage_ = Stage::turn;
  return true;
}

bool Drain::take_turn() {
  switch (turn_.step()) {
    case Status::ok:
      return tell_leaves();
    case Status::busy:
      return rest(Stage::turn);
    case Status::conflict:
      publish(state_.homes[state_.fabric.rank()].leaves ? leave_word::kLeaves : 0);
      return rest(Stage::claim);
    default:
      return false;
  }
}

/// From now on it is not taken back (STO-M12).
bool Drain::tell_leaves() {
  if (!state_.may_leave()) return end(Status::not_allowed);
  if (state_.tainted_works > 0) return rest(Stage::turn);  // as the other members do (STO-M10)
  const Rank own = state_.fabric.rank();
  state_.homes[own].leaves = true;
  ++state_.copy_epoch;
  publish(leave_word::kMoves | leave_word::kLeaves);
  telling_.begin(told_word::leaves(own, 0), kConnectNs);
  stage_ = Stage::tell_leaves;
  return true;
}

bool Drain::begin_round() {
  const Rank own = state_.fabric.rank();
  generation_ = state_.progress.generation();
  ++round_;
  has_covered_ = false;
  state_.copies->make_further(own, round_);
  telling_.begin(told_word::leaves(own, round_), 0);
  stage_ = Stage::tell_round;
  return true;
}

/// The members have changed. A home that has got some of the keys makes copies of these, too, if it
/// knows of them.
bool Drain::begin_anew() {
  const std::uint64_t below = state_.homes[state_.fabric.rank()].moved_below;
  return below == 0 ? begin_round() : tell(below, Stage::tell_moved);
}

bool Drain::tell(std::uint64_t below, Stage next) {
  telling_.begin(told_word::make(state_.fabric.rank(), below, to_), 0);
  stage_ = next;
  return true;
}

bool Drain::has_told() {
  const Status status = telling_.step();
  if (status == Status::busy) return rest(stage_);
  if (status != Status::ok) return false;
  if (stage_ == Stage::tell_left) return have_changed() ? begin_anew() : end(Status::ok);
  if (stage_ == Stage::tell_leaves && state_.has_old_copies()) return rest(stage_);
  if (stage_ != Stage::tell_round) return begin_round();
  asks_ = 0;
  stage_ = Stage::look;
  return true;
}

bool Drain::look() {
  if (have_changed()) return begin_anew();
  const Rank own = state_.fabric.rank();
  if (!state_.has_given_all(own) && !state_.may_leave()) return end(Status::not_allowed);
  while (asks_ < state_.members && state_.is_gone(asks_)) ++asks_;
  const std::uint64_t moved = state_.homes[own].moved_below;
  if (asks_ >= state_.members && moved > 0 && moved < kAllPositions && !has_covered_) {
    has_covered_ = true;
    asks_ = own;
    state_.copies->tell_of_departing();
  }
  if (asks_ >= state_.members || is_injected(FaultInjection::further_copies_are_not_awaited)) {
    rest_ = {};
    stage_ = Stage::settle;
    return true;
  }
  if (asks_ == own)
    return next_home(memory::load(word_at(state_.index.memory().data() + kReadyAt)));
  done_.reset();
  if (!state_.fabric
           .post(read(asks_, state_.index.id(), kReadyAt, &word_, kWordBytes).notify(done_))
           .all())
    return rest(Stage::look);
  stage_ = Stage::looked;
  return true;
}

bool Drain::looked() {
  if (!done_.finished()) return false;
  if (done_.failed()) return rest(Stage::look);  // until the members agree
  return next_home(word_);
}

bool Drain::next_home(std::uint64_t word) {
  const Rank own = state_.fabric.rank();
  if ((word & ready_word::kHasNoRoom) != 0 && status_ == Status::under_way &&
      ready_word::is(word, own, round_, 0))
    status_ = Status::no_room;
  if ((word & ready_word::kHasNoRoom) != 0 || !ready_word::is(word, own, round_, generation_))
    return rest(Stage::look);
  ++asks_;
  stage_ = Stage::look;
  return true;
}

// --- one chain after the other -------------------------------------------------------------------

bool Drain::lock() {
  if (have_changed()) return begin_anew();
  const Rank own = state_.fabric.rank();
  position_ = state_.homes[own].moved_below;
  if (position_ >= kAllPositions) {
    publish(leave_word::kMoves | leave_word::kLeaves | leave_word::kHasLeft);
    return tell(kAllPositions, Stage::tell_left);
  }
  const Place at = state_.main_header(own, state_.homes[own].shape.number_of(position_));
  lock_word_ = lock_word::make(own, ++state_.serial);
  before_ = 0;
  done_.reset();
  if (!state_.fabric
           .post(
               compare_swap(own, state_.region_of(at), at.offset + kLockAt, 0, lock_word_, &before_)
                   .notify(done_))
           .all())
    return rest(Stage::lock);
  stage_ = Stage::locked;
  return true;
}

bool Drain::locked() {
  if (!done_.finished()) return false;
  if (done_.failed()) return end(Status::lost);  // its own failure
  if (before_ != 0) return rest(Stage::lock);
  if (have_changed()) {
    unlock(memory::load(word_at(main() + kVersionAt)));
    return begin_anew();
  }
  depart();
  rest_ = {};
  stage_ = Stage::gone;
  return true;
}

/// The chain's keys are all at other homes already.
void Drain::depart() {
  const Rank own = state_.fabric.rank();
  const IndexShape& shape = state_.homes[own].shape;
  const std::uint64_t end = shape.end_of(position_, shape.depth_of(position_));
  std::byte* const at = main();
  for (const std::byte* const bucket : OwnChain(state_, at))
    state_.see_bucket(at, bucket, [&](const StoreEntry& entry) {
      if (state_.serves(hash_of(entry.key))) ++state_.seen.keys_moved;
    });
  to_ = state_.copies_behind(own, position_).ranks[0];
  publish(leave_word::kMoves | leave_word::kLeaves);
  const Departed gone = depart_chain(state_, at, to_);
  gone_.keys += gone.keys;
  gone_.bytes += gone.bytes;
  unlock(memory::load(word_at(at + kVersionAt)) + 1);
  state_.learn_move(own, end, to_);
  memory::store(word_at(state_.index.memory().data() + kMovedAt), end);
}

}  // namespace dunlin::store
