#include "store/departure.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"
#include "store/steps.hpp"

namespace dunlin::store {

using remote::Status;

Departure::~Departure() { state_.fabric.abandon(done_); }

void Departure::publish(std::uint64_t state) noexcept {
  memory::store(word_at(state_.index.memory().data() + kLeaveAt), leave_word::make(state, to_));
}

/// Again from that stage on, a little later.
bool Departure::rest(Stage next) {
  stage_ = next;
  state_.begin_rest(rest_);
  return false;
}

bool Departure::post(const Operation& operation, Stage next) {
  done_.reset();
  if (!state_.fabric.post(operation.notify(done_)).all()) return rest(stage_);
  stage_ = next;
  return true;
}

void Departure::begin() {
  if (status_ == Status::under_way || status_ == Status::ok) return;
  status_ = Status::under_way;
  leaves_next_ = true;
  state_.look_again_soon();
}

bool Departure::end(Status status) {
  move_.stop();
  raises_.begin();
  telling_.stop();
  state_.fabric.abandon(done_);
  done_.reset();
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

/// Whether the positions have moved, and nothing is second here any more.
bool Departure::is_done() const noexcept {
  const State::Home& home = state_.homes[state_.fabric.rank()];
  return home.moved_below >= limit_ &&
         (!state_.has_copies() || home.drained_below >= home.moved_below);
}

/// Begins what it has been asked for, when nothing else is under way.
void Departure::look_at_ask() {
  std::uint64_t& ask = word_at(state_.index.memory().data() + kAskAt);
  const std::uint64_t word = memory::load(ask);
  const Rank by = ask_word::by(word);
  const bool is_over = word != 0 && state_.is_gone(by);
  if (is_over) memory::store(ask, 0);
  // One that has come a moment ago may have asked before this home has heard of it.
  const bool is_asked =
      word != 0 && !is_over && state_.progress.contains(by) && !ask_word::is_answered(word);
  if (!is_asked && !leaves_next_) return;
  gives_ = !std::exchange(leaves_next_, false);
  const State::Home& home = state_.homes[state_.fabric.rank()];
  limit_ = gives_ ? kGivenPositions : kAllPositions;
  const bool has_given = home.moved_below != 0 && (is_done() || home.moved_to != by);
  if (gives_ && (by >= state_.places || has_given)) {
    gives_ = false;
    return answer(Status::not_allowed);
  }
  if (gives_) to_ = by;
  stage_ = Stage::claim;
  is_over_ = false;
  why_ = Status::ok;
  rest_ = {};
}

/// STO-M5. With one copy, what is at a home that has died is lost; the other keys stay here.
void Departure::look_at_members() {
  const bool moves = stage_ >= Stage::ready && stage_ <= Stage::gone;
  if (moves && state_.is_gone(to_)) is_over_ = true;
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
      return claim();
    case Stage::turn:
      return take_turn();
    case Stage::ready:
    case Stage::readied:
    case Stage::move:
    case Stage::raise:
    case Stage::release:
    case Stage::gone:
      return step_of_chain();
    case Stage::tell:
    case Stage::drained:
      return told();
    case Stage::ask:
    case Stage::asked:
    case Stage::await:
    case Stage::awaited:
    case Stage::sweep:
    case Stage::sweeping:
    case Stage::swept:
      return step_of_copies();
    case Stage::ended:
      return false;
  }
  return false;
}

bool Departure::step_of_chain() {
  switch (stage_) {
    case Stage::ready:
      return ready();
    case Stage::readied:
      return readied();
    case Stage::move:
      return move();
    case Stage::raise:
      return raise();
    case Stage::release:
      if (move_.released() != Status::ok) return false;
      stage_ = Stage::gone;
      return true;
    default:
      return is_counted();
  }
}

// --- one home at a time, and which is the next one -----------------------------------------------

/// STO-M4: its own word before it reads those of the others.
bool Departure::claim() {
  publish(leave_word::kMoves);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  turn_.begin();
  stage_ = Stage::turn;
  return true;
}

bool Departure::take_turn() {
  switch (turn_.step()) {
    case Status::ok:
      return choose();
    case Status::busy:
      return rest(Stage::turn);
    case Status::conflict:  // of two at once, the one with the lower rank is first
      publish(0);
      return rest(Stage::claim);
    default:
      return false;
  }
}

bool Departure::choose() {
  const Rank own = state_.fabric.rank();
  State::Home& home = state_.homes[own];
  const bool has_moved = home.moved_below >= limit_;
  if (home.moved_below != 0) {
    // A part has moved before, and what comes then follows it.
    to_ = state_.moved_place(home.moved_to, home.moved_below);
  } else if (!gives_) {
    bool must_wait = false;
    const std::optional<Rank> next = next_home(must_wait);
    if (must_wait) return rest(Stage::turn);
    if (!next) return end(Status::not_allowed);
    to_ = *next;
  }
  if (state_.is_gone(to_) && !(state_.has_copies() && has_moved)) return end(Status::lost);
  if (state_.homes[to_].moved_below != 0 && home.moved_below == 0) return end(Status::not_allowed);
  const Status known = has_moved ? Status::ok : state_.know_index(to_);
  if (known == Status::under_way) return rest(Stage::turn);
  if (known != Status::ok) return end(known);
  if (!state_.growth->is_idle()) return rest(Stage::turn);  // it ends what it has begun
  find_groups();
  if (!may_go()) return end(Status::not_allowed);
  publish(leave_word::kMoves);  // and where to
  position_ = home.moved_below;
  complete_in_ = UINT64_MAX;
  rest_ = {};
  stage_ = Stage::ready;
  return true;
}

/// With two copies, each key keeps two homes; and what another home has begun comes first.
bool Departure::may_go() const {
  if (!state_.has_copies()) return true;
  const Rank own = state_.fabric.rank();
  for (Rank rank = 0; rank < state_.places; ++rank)
    if (rank != own && !state_.progress.is_gone(rank) &&
        state_.homes[rank].moved_below > state_.homes[rank].drained_below)
      return false;
  return keep_both();
}

bool Departure::keep_both() const {
  return !state_.has_copies() || std::ranges::all_of(groups_, [](const KeyGroup& one) {
    return one.then.second.has_value();
  });
}

/// The next member, in the order of ranks, that has memory for keys and has given none away.
/// With two copies rather one that does not have them already: it would get them once more.
std::optional<Rank> Departure::next_home(bool& must_wait) {
  const Rank own = state_.fabric.rank();
  std::optional<Rank> found;
  for (std::uint32_t i = 1; i < state_.places; ++i) {
    const auto rank = static_cast<Rank>((own + i) % state_.places);
    if (state_.is_gone(rank)) continue;
    if (rank >= state_.members) {
      if (!state_.fabric.connected(rank, state_.index.id())) continue;
      const Status known =
          state_.progress.contains(rank) ? state_.know_index(rank) : Status::under_way;
      must_wait = known == Status::under_way;
      if (must_wait) return std::nullopt;
      if (known != Status::ok) continue;  // a client
    }
    if (state_.homes[rank].moved_below != 0) continue;
    to_ = rank;
    find_groups();
    if (!keep_both()) continue;
    const bool is_second = std::ranges::any_of(
        groups_, [&](const KeyGroup& group) { return group.now.second == rank; });
    if (!state_.has_copies() || !is_second) return rank;
    if (!found) found = rank;
  }
  return found;
}

// --- one chain -----------------------------------------------------------------------------------

/// One that has failed is waited for until the members agree.
bool Departure::look_for_home() {
  const auto has_no_part = [&](Rank rank) {
    if (rank == state_.fabric.rank() || !state_.progress.contains(rank) ||
        state_.homes[rank].is_client)
      return true;
    return !state_.fabric.failed(rank) &&
           (state_.homes[rank].withdrawn || !state_.fabric.connected(rank, state_.index.id()));
  };
  while (asks_ < state_.places && has_no_part(asks_)) ++asks_;
  return asks_ < state_.places;
}

/// A member that has joined later may have no words for homes.
bool Departure::is_client(Rank rank, bool& must_wait) {
  if (rank < state_.members) return false;
  const Status known = state_.know_index(rank);
  must_wait = known == Status::under_way;
  return !must_wait && known != Status::ok;
}

/// The home that gets the keys is gone. Another one can get them if that one has none of them.
bool Departure::give_up(Status why) {
  const std::uint64_t moved = state_.homes[state_.fabric.rank()].moved_below;
  const bool has_another = why == Status::lost && !gives_;
  if (moved == 0 && !has_another) return end(why);
  if (moved != 0 && !state_.has_copies()) return end(why);
  move_.stop();
  raises_.begin();
  is_over_ = false;
  if (moved != 0) {  // the other homes still take their part of what has moved
    limit_ = moved;
    why_ = why;
    return rest(Stage::ready);
  }
  return rest(Stage::claim);
}

void Departure::find_groups() {
  groups_ = state_.groups_served(
      {.mover = state_.fabric.rank(), .to = to_, .has_moved = true, .is_shed = false});
}

/// STO-M9. With two copies, no chain moves while copies are missing: the home that goes may have
/// the last one.
bool Departure::ready() {
  if (is_over_ && (!state_.has_copies() || position_ < limit_)) return give_up(Status::lost);
  if (position_ >= limit_) return tell(0, Stage::tell);
  const std::uint64_t now = state_.progress.generation();
  if (complete_in_ != now && state_.has_copies()) {
    if (state_.copies->lacks_room()) return end(Status::no_room);
    if (!state_.copies->complete()) return rest(Stage::ready);
    if (std::exchange(generation_, now) != now) asks_ = 0;
    if (look_for_home()) {
      bool must_wait = false;
      if (is_client(asks_, must_wait)) {
        ++asks_;
        return true;
      }
      if (must_wait) return rest(Stage::ready);
      return post(read(asks_, state_.index.id(), kCompleteAt, &word_, kWordBytes), Stage::readied);
    }
    asks_ = 0;
  }
  if (complete_in_ != now) find_groups();
  if (!keep_both()) return give_up(Status::not_allowed);  // others have died meanwhile
  complete_in_ = now;
  move_.begin(position_, groups_);
  stage_ = Stage::move;
  return true;
}

bool Departure::readied() {
  if (!done_.finished()) return false;
  if (done_.failed()) return rest(Stage::ready);
  if (word_ == (kLacksRoom | generation_)) return end(Status::no_room);
  if ((word_ & kLacksRoom) != 0 || word_ < generation_) return rest(Stage::ready);
  ++asks_;
  stage_ = Stage::ready;
  return true;
}

bool Departure::move() {
  const Status status = move_.step();
  if (status == Status::under_way) return false;
  if (status == Status::ok) {
    raise_all();
    raises_.stop_waiting();
    stage_ = Stage::raise;
    return true;
  }
  if (is_over_) return give_up(Status::lost);
  return status == Status::busy ? rest(Stage::ready) : end(status);
}

/// STO-M5, STO-M9. The other homes have all of these keys up to the end of the chain, whatever
/// happens here.
void Departure::raise_all() {
  const Rank own = state_.fabric.rank();
  const std::uint64_t end = move_.end();
  raises_.begin();
  std::vector<Rank> gainers{to_};
  if (const Rank at = state_.place_of(to_, position_); at != to_) gainers.push_back(at);
  for (const Rank at : gainers)
    for (Rank home = 0; home < state_.members; ++home) {
      const std::uint64_t has = home == own ? kAllPositions : state_.own_gained(home);
      // This chain may have none of that home's keys, and the rest of them may be there already.
      if (home == at || has <= position_) continue;
      raises_.add({.at = at,
                   .offset = gained_at(state_.homes[at].ranks, home),
                   .from = 0,
                   .below = std::min(end, has)});
    }
  if (!state_.has_copies()) return;
  for (const KeyGroup& group : groups_) {
    const std::uint64_t from = std::max(group.from, position_);
    const std::uint64_t below = std::min(group.below, end);
    if (from >= below) continue;
    for (const Rank at : {group.then.first, group.then.second.value_or(group.then.first)})
      if (!group.now.has(at)) state_.claim(raises_, at, group.home, from, below);
  }
}

bool Departure::raise() {
  const Status status = raises_.step();
  if (status == Status::under_way) return false;
  if (is_over_) return give_up(Status::lost);
  if (status == Status::busy) return rest(Stage::raise);
  depart();
  rest_ = {};
  stage_ = Stage::release;
  return true;
}

/// Under the lock, in own memory. What is second here stays (STO-M10).
void Departure::depart() {
  const Rank own = state_.fabric.rank();
  std::byte* const at = move_.main();
  const std::uint64_t version = memory::load(word_at(at + kVersionAt));
  const std::uint64_t word = memory::load(word_at(at + kDepthAt));
  const std::uint64_t depth = shed_depth::is(word) ? shed_depth::depth(word) : word;
  state_.lose_counts(state_.drop_entries(
      at, departed_depth::make(to_, depth),
      [&](std::uint64_t hash) { return !state_.has_copies() || move_.moves(hash); }));
  state_.counters.keys_moved += move_.keys();
  position_ = move_.end();
  state_.learn_move(own, position_, to_);
  memory::store(word_at(state_.index.memory().data() + kMovedAt), position_);
  move_.release(version + 1);
}

bool Departure::is_counted() {
  state_.correct_counts();
  const bool is_counted = state_.uncounted.keys == 0 && state_.uncounted.bytes == 0;
  if (!is_counted) return rest(stage_);
  if (!state_.counts_done.finished()) return false;
  stage_ = stage_ == Stage::gone ? Stage::ready : Stage::sweep;
  return true;
}

// --- all members are told ------------------------------------------------------------------------

/// STO-M6. One after the other, until each has published that it knows.
bool Departure::tell(std::uint64_t flags, Stage next) {
  const Rank own = state_.fabric.rank();
  const std::uint64_t below = state_.homes[own].moved_below;
  publish(leave_word::kMoves | (below == kAllPositions ? leave_word::kHasLeft : 0));
  telling_.begin(told_word::make(own, below, to_) | flags);
  stage_ = next;
  return true;
}

bool Departure::told() {
  const Status status = telling_.step();
  if (status == Status::busy) return rest(stage_);
  if (status != Status::ok) return false;
  rest_ = {};
  if (!state_.has_copies()) return end(Status::ok);
  if (stage_ == Stage::drained) {
    position_ = 0;
    stage_ = Stage::sweep;
    return true;
  }
  asks_ = 0;
  ++round_;
  generation_ = state_.progress.generation();
  stage_ = Stage::ask;
  return true;
}

}  // namespace dunlin::store
