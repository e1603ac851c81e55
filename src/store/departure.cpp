#include "store/departure.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"
#include "store/own_chain.hpp"
#include "store/state.hpp"
#include "store/steps.hpp"

namespace dunlin::store {

using remote::Status;

Departure::~Departure() { state_.fabric.abandon(done_); }

std::byte* Departure::main() const noexcept {
  return state_.own_main(state_.homes[state_.fabric.rank()].shape.number_of(position_));
}

void Departure::publish(std::uint64_t state) noexcept {
  memory::store(word_at(state_.index.memory().data() + kLeaveAt), leave_word::make(state, to_));
}

/// Again from that stage on, a little later.
bool Departure::rest(Stage next) {
  stage_ = next;
  state_.begin_rest(rest_);
  return false;
}

void Departure::unlock(std::uint64_t version) noexcept {
  memory::store(word_at(main() + kVersionAt), version);
  memory::store(word_at(main() + kLockAt), 0);
  has_lock_ = false;
}

void Departure::begin() {
  if (status_ == Status::under_way || status_ == Status::ok) return;
  status_ = Status::under_way;
  leaves_next_ = true;
  state_.look_again_soon();
}

bool Departure::end(Status status) {
  if (has_lock_) unlock(memory::load(word_at(main() + kVersionAt)));
  if (is_under_way_) operation_->abandon();
  is_under_way_ = false;
  state_.fabric.abandon(done_);
  done_.reset();
  copied_.clear();
  if (stage_ == Stage::locked) {  // it may get the lock yet
    const Rank own = state_.fabric.rank();
    const Place at = state_.main_header(own, state_.homes[own].shape.number_of(position_));
    state_.mends.push_back({own, at.at(kLockAt), lock_word_});
    state_.look_again_soon();
  }
  const bool has_left = state_.homes[state_.fabric.rank()].moved_below == kAllPositions;
  publish(has_left ? leave_word::kHasLeft : 0);
  stage_ = Stage::ended;
  if (std::exchange(gives_, false))
    answer(status);
  else
    status_ = status;
  state_.growth->look_at_share();
  return false;
}

void Departure::answer(Status status) noexcept {
  std::uint64_t& ask = word_at(state_.index.memory().data() + kAskAt);
  memory::store(ask, ask_word::answered(memory::load(ask), static_cast<std::uint8_t>(status)));
}

/// Begins what it has been asked for, when nothing else is under way.
void Departure::look_at_ask() {
  std::uint64_t& ask = word_at(state_.index.memory().data() + kAskAt);
  const std::uint64_t word = memory::load(ask);
  const Rank by = ask_word::by(word);
  const bool is_there = word != 0 && !state_.is_gone(by);
  if (word != 0 && !is_there) memory::store(ask, 0);
  const bool is_asked = is_there && !ask_word::is_answered(word);
  if (!is_asked && !leaves_next_) return;
  gives_ = !std::exchange(leaves_next_, false);
  const State::Home& home = state_.homes[state_.fabric.rank()];
  limit_ = gives_ ? kGivenPositions : kAllPositions;
  const bool has_given =
      home.moved_below != 0 && (home.moved_below >= limit_ || home.moved_to != by);
  if (gives_ && (by >= state_.places || has_given)) {
    gives_ = false;
    return answer(Status::not_allowed);
  }
  if (gives_) to_ = by;
  stage_ = Stage::claim;
  rest_ = {};
}

/// STO-M5. What is at a home that has died is lost; the other keys stay here.
void Departure::look_at_members() {
  if (stage_ > Stage::asked && stage_ < Stage::ended && state_.is_gone(to_)) end(Status::lost);
}

std::size_t Departure::poll() {
  if (state_.store == nullptr || state_.progress.stopped()) return 0;
  if (stage_ == Stage::ended) look_at_ask();
  if (stage_ == Stage::ended) return 0;
  return take_steps(
      state_, rest_, [&] { return stage_ != Stage::ended; }, [&] { return step(); });
}

bool Departure::step() {
  switch (stage_) {
    case Stage::claim:
      publish(leave_word::kMoves);
      // STO-M4: its own word before it reads those of the others.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      asks_ = 0;
      stage_ = Stage::ask;
      return true;
    case Stage::ask:
      return ask();
    case Stage::asked:
      return asked();
    case Stage::lock:
      return lock();
    case Stage::locked:
      return locked();
    case Stage::copy:
      return copy();
    case Stage::undo:
      return undo();
    case Stage::raise:
      return raise();
    case Stage::cover:
      return cover();
    case Stage::covered:
      return covered();
    case Stage::gone:
      return correct_counters();
    case Stage::tell:
      return tell();
    case Stage::told:
      return told();
    case Stage::heard:
      return heard();
    case Stage::ended:
      return false;
  }
  return false;
}

// --- one home leaves at a time, and chooses the next one -----------------------------------------

bool Departure::read_word(Rank rank, std::uint64_t at, Stage next) {
  done_.reset();
  const bool all =
      state_.fabric.post(read(rank, state_.index.id(), at, &word_, kWordBytes).notify(done_)).all();
  if (!all) return rest(stage_);
  stage_ = next;
  return true;
}

bool Departure::ask() {
  const Rank own = state_.fabric.rank();
  while (asks_ < state_.places && (asks_ == own || !state_.progress.contains(asks_) ||
                                   !state_.fabric.connected(asks_, state_.index.id())))
    ++asks_;
  if (asks_ == state_.places) return choose();
  done_.reset();
  const bool all =
      state_.fabric
          .post(
              read(asks_, state_.index.id(), kLeaveAt, words_.data(), sizeof words_).notify(done_))
          .all();
  if (!all) return rest(stage_);
  stage_ = Stage::asked;
  return true;
}

/// Of two that leave at once, the one with the lower rank is first.
bool Departure::asked() {
  if (!done_.finished()) return false;
  if (done_.failed()) return rest(Stage::ask);
  state_.learn_move(asks_, words_[2], leave_word::to(words_[0]));
  const bool moves = (words_[0] & leave_word::kMoves) != 0;
  if (moves && asks_ < state_.fabric.rank()) {
    publish(0);
    return rest(Stage::claim);
  }
  if (moves) return rest(Stage::ask);
  ++asks_;
  stage_ = Stage::ask;
  return true;
}

bool Departure::choose() {
  const Rank own = state_.fabric.rank();
  State::Home& home = state_.homes[own];
  if (home.moved_below != 0) {
    // A part has moved before, and what comes then follows it.
    to_ = state_.moved_place(home.moved_to, home.moved_below);
  } else if (!gives_) {
    bool must_wait = false;
    const std::optional<Rank> next = next_home(must_wait);
    if (must_wait) return rest(Stage::ask);
    if (!next) return end(Status::not_allowed);
    to_ = *next;
  }
  if (state_.is_gone(to_)) return end(Status::lost);
  if (state_.homes[to_].moved_below != 0 && home.moved_below == 0) return end(Status::not_allowed);
  const Status known = state_.know_index(to_);
  if (known == Status::under_way) return rest(Stage::ask);
  if (known != Status::ok) return end(known);
  if (!state_.growth->is_idle()) return rest(Stage::ask);  // it ends what it has begun
  if (operation_ == nullptr) operation_ = std::make_unique<StoreOperation>(*state_.store);
  position_ = home.moved_below;
  stage_ = position_ >= limit_ ? Stage::tell : Stage::lock;
  publish(leave_word::kMoves);  // and where to
  asks_ = 0;
  return true;
}

/// The next member, in the order of ranks, that has memory for keys and has given none away.
std::optional<Rank> Departure::next_home(bool& must_wait) {
  const Rank own = state_.fabric.rank();
  for (std::uint32_t i = 1; i < state_.places; ++i) {
    const auto rank = static_cast<Rank>((own + i) % state_.places);
    if (state_.is_gone(rank)) continue;
    if (rank >= state_.members) {
      if (!state_.fabric.connected(rank, state_.index.id())) continue;
      const Status known = state_.know_index(rank);
      must_wait = known == Status::under_way;
      if (must_wait) return std::nullopt;
      if (known != Status::ok) continue;  // a client
    }
    if (state_.homes[rank].moved_below == 0) return rank;
  }
  return std::nullopt;
}

// --- one chain -----------------------------------------------------------------------------------

bool Departure::lock() {
  const Rank own = state_.fabric.rank();
  const Place at = state_.main_header(own, state_.homes[own].shape.number_of(position_));
  lock_word_ = lock_word::make(own, ++state_.serial);
  before_ = 0;
  done_.reset();
  const bool all = state_.fabric
                       .post(compare_swap(own, state_.region_of(at), at.offset + kLockAt, 0,
                                          lock_word_, &before_)
                                 .notify(done_))
                       .all();
  if (!all) return rest(Stage::lock);
  stage_ = Stage::locked;
  return true;
}

bool Departure::locked() {
  if (!done_.finished()) return false;
  if (done_.failed()) return end(Status::lost);  // its own failure
  if (before_ != 0) return rest(Stage::lock);
  has_lock_ = true;
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  end_ = shape.end_of(position_, shape.depth_of(position_));
  raised_below_ = position_;
  collect();
  stage_ = Stage::copy;
  return true;
}

/// All keys of the chain, and those that an earlier attempt has copied and that are gone since.
void Departure::collect() {
  keys_.clear();
  next_ = 0;
  std::byte* const at = main();
  for (const std::byte* const bucket : OwnChain(state_, at))
    state_.see_bucket(at, bucket, [&](const StoreEntry& entry) {
      if (entry.ttl_ns == 0 || !state_.serves(hash_of(entry.key))) return;
      keys_.push_back({.bytes = {entry.key.begin(), entry.key.end()},
                       .value = {entry.value.begin(), entry.value.end()},
                       .version = entry.version,
                       .ttl_ns = entry.ttl_ns});
    });
  for (const auto& key : copied_)
    if (std::ranges::none_of(keys_, [&](const Key& one) { return one.bytes == key; }))
      keys_.push_back({.bytes = key, .value = {}, .is_there = false});
}

/// Of the operation at the other home. If it has failed, gives the lock back, so that members which
/// hold a lock there and want this one go on.
bool Departure::has_ended(bool& goes_on) {
  goes_on = false;
  if (!operation_->finished()) return false;
  is_under_way_ = false;
  const Status status = operation_->status();
  if (status == Status::ok) return true;
  const bool has_failed = status == Status::lost && state_.fault(to_) != Status::ok;
  unlock(memory::load(word_at(main() + kVersionAt)));
  if (status == Status::busy || has_failed) {
    goes_on = rest(Stage::lock);
    return false;
  }
  why_ = status;
  stage_ = Stage::undo;
  goes_on = true;
  return false;
}

/// Takes the chain's copies back, as its keys may move elsewhere later.
bool Departure::undo() {
  if (is_under_way_) {
    if (!operation_->finished()) return false;
    is_under_way_ = false;
    const Status status = operation_->status();
    if (status == Status::busy || (status == Status::lost && state_.fault(to_) != Status::ok))
      return rest(Stage::undo);
    if (status != Status::ok) return end(why_);
    copied_.pop_back();
  }
  if (copied_.empty()) return end(why_);
  is_under_way_ = true;
  state_.begin_move(*operation_, Kind::copy_erase, std::span<const std::byte>(copied_.back()), {},
                    kNoExpiry, 0, to_);
  return true;
}

bool Departure::copy() {
  if (is_under_way_) {
    bool goes_on = false;
    if (!has_ended(goes_on)) return goes_on;
    ++next_;
  }
  if (next_ == keys_.size()) {
    stage_ = Stage::raise;
    return true;
  }
  const Key& key = keys_[next_];
  if (key.is_there && std::ranges::find(copied_, key.bytes) == copied_.end())
    copied_.push_back(key.bytes);
  is_under_way_ = true;
  state_.begin_move(*operation_, key.is_there ? Kind::copy_put : Kind::copy_erase,
                    std::span<const std::byte>(key.bytes), key.value, key.ttl_ns, key.version, to_);
  return true;
}

/// STO-M3. All chains there that get a key of this one.
bool Departure::raise() {
  if (is_under_way_) {
    bool goes_on = false;
    if (!has_ended(goes_on)) return goes_on;
    raised_below_ = state_.raised_below(*operation_);
  }
  if (raised_below_ >= end_) {
    stage_ = Stage::cover;
    posted_ = 0;
    done_.reset();
    return true;
  }
  is_under_way_ = true;
  state_.begin_raise(*operation_, raised_below_, memory::load(word_at(main() + kVersionAt)), to_);
  return true;
}

/// STO-M5. The other home has all of this home's keys below that position, whatever happens here.
bool Departure::cover() {
  const Rank own = state_.fabric.rank();
  covers_.resize(state_.members);  // to which keys are hashed
  for (; posted_ < state_.members; ++posted_) {
    const auto home = static_cast<Rank>(posted_);
    covers_[home] = is_injected(FaultInjection::covers_too_much) ? kAllPositions
                    : home == own                                ? end_
                                  : std::min(end_, state_.own_covered(home));
    // This chain may have none of that home's keys, and the rest of them may be there already.
    const bool has_some = home == own || state_.own_covered(home) > position_ ||
                          is_injected(FaultInjection::covers_too_much);
    if (!has_some || home == to_) continue;
    if (!state_.fabric
             .post(write(to_, state_.redo.id(), covered_at(state_.homes[to_].ranks, home),
                         &covers_[home], kWordBytes)
                       .notify(done_, Notify::remotely))
             .all())
      return state_.fault(to_) == Status::ok && rest(Stage::cover);
  }
  stage_ = Stage::covered;
  return true;
}

bool Departure::covered() {
  if (!done_.finished()) return false;
  if (done_.failed()) return false;  // until the members agree
  depart();
  copied_.clear();
  rest_ = {};
  position_ = end_;
  stage_ = Stage::gone;
  posted_ = 0;
  return true;
}

/// Under the lock, in own memory. The entries come first: a member that sees the chain's departure
/// may change a key at the other home, and no call may find the key here then (STO-M2).
void Departure::depart() {
  const Rank own = state_.fabric.rank();
  std::byte* const at = main();
  const std::uint64_t version = memory::load(word_at(at + kVersionAt));
  const std::uint64_t depth = memory::load(word_at(at + kDepthAt));
  slots_.clear();
  places_.clear();
  for (std::byte* const bucket : OwnChain(state_, at))
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::byte* const slot = bucket + i * kSlotBytes;
      const std::uint64_t word = memory::load(word_at(slot + kWordBytes));
      if (slot_word::type_of(word) != SlotType::entry) continue;
      const Location location = slot_word::location_of(word);
      std::byte* const entry = state_.own_entry(location);
      if (entry == nullptr) continue;
      const std::uint64_t guard = memory::load(word_at(entry));
      if (!is_injected(FaultInjection::departed_entry_stays_live))
        memory::store(word_at(entry), guard_of(incarnation_of(guard), EntryState::moved));
      ++keys_gone_;
      const std::uint64_t lengths = memory::load(word_at(entry + offsetof(EntryHead, value_bytes)));
      bytes_gone_ += lengths & UINT32_MAX;
      slots_.push_back(slot);
      places_.push_back(location);
    }
  memory::store(word_at(at + kDepthAt), departed_depth::make(to_, depth));
  for (std::byte* const slot : slots_) {
    memory::store(word_at(slot + kWordBytes), 0);
    memory::store(word_at(slot), 0);
  }
  if (!is_injected(FaultInjection::departed_entry_stays_live))
    for (const Location& location : places_) state_.free_later(location);
  state_.seen.keys_moved += keys_.size();
  unlock(version + 1);
  state_.learn_move(own, end_, to_);
  memory::store(word_at(state_.index.memory().data() + kMovedAt), end_);
}

bool Departure::correct_counters() {
  const Rank own = state_.fabric.rank();
  for (auto& [at, gone] : {std::pair{kKeysAt, &keys_gone_}, {kValueBytesAt, &bytes_gone_}}) {
    if (*gone == 0) continue;
    if (!state_.fabric.post(fetch_add(own, state_.index.id(), at, 0 - *gone, nullptr)).all())
      return rest(Stage::gone);
    *gone = 0;
  }
  asks_ = 0;
  stage_ = position_ < limit_ ? Stage::lock : Stage::tell;
  return true;
}

// --- all members are told ------------------------------------------------------------------------

/// STO-M6. One after the other, until each has published that it knows.
bool Departure::tell() {
  const Rank own = state_.fabric.rank();
  const std::uint64_t below = state_.homes[own].moved_below;
  publish(leave_word::kMoves | (below == kAllPositions ? leave_word::kHasLeft : 0));
  while (asks_ < state_.progress.capacity() && (asks_ == own || !state_.progress.contains(asks_) ||
                                                !state_.fabric.connected(asks_, state_.index.id())))
    ++asks_;
  if (asks_ == state_.progress.capacity()) return end(Status::ok);
  word_ = told_word::make(own, below, to_);
  done_.reset();
  if (!state_.fabric
           .post(write(asks_, state_.index.id(), kToldAt, &word_, kWordBytes)
                     .notify(done_, Notify::remotely))
           .all())
    return rest(Stage::tell);
  stage_ = Stage::told;
  return true;
}

bool Departure::told() {
  if (!done_.finished()) return false;
  if (done_.failed()) return rest(Stage::tell);
  return read_word(asks_, kToldAt, Stage::heard);
}

bool Departure::heard() {
  if (!done_.finished()) return false;
  if (done_.failed()) return rest(Stage::tell);
  if (word_ != 0) {
    done_.reset();
    return rest(Stage::told);
  }
  ++asks_;
  stage_ = Stage::tell;
  return true;
}

}  // namespace dunlin::store
