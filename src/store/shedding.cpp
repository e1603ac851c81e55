#include "store/shedding.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"
#include "store/steps.hpp"

namespace dunlin::store {

using remote::Status;

void Shedding::answer(std::uint64_t generation) noexcept {
  memory::store(word_at(state_.index.memory().data() + kShedDoneAt),
                shed_word::answered(request_, generation & UINT32_MAX));
}

bool Shedding::rest(Stage next) {
  stage_ = next;
  state_.begin_rest(rest_);
  return false;
}

/// The mover asks once more when the members have changed.
void Shedding::look_at_request() {
  const std::uint64_t request = memory::load(word_at(state_.index.memory().data() + kShedAt));
  if (request == 0 || request == request_) return;
  const Rank mover = shed_word::mover(request);
  if (mover >= state_.places) return;
  request_ = request;
  mover_ = mover;
  state_.look_at_index_again(mover_);
  rest_ = {};
  answer(0);
  stage_ = Stage::look;
}

/// How far it has moved its keys: this home may have joined since it told all of them.
bool Shedding::look() {
  if (state_.progress.is_gone(mover_)) {
    stage_ = Stage::idle;
    return false;
  }
  const Status known = state_.know_index(mover_);
  if (known == Status::under_way) return false;
  if (known != Status::ok) return rest(Stage::look);
  const State::Home& home = state_.homes[state_.fabric.rank()];
  below_ = state_.homes[mover_].moved_below;
  const State::Home::Shed* const shed = home.shed_of(mover_);
  position_ = shed != nullptr && shed->below == below_ ? shed->marked_below : 0;
  groups_in_ = UINT64_MAX;
  stage_ = Stage::ready;
  return true;
}

std::size_t Shedding::poll() {
  if (state_.store == nullptr || state_.progress.stopped()) return 0;
  if (!is_amid_chain()) look_at_request();
  if (stage_ == Stage::idle) return 0;
  return take_steps(
      state_, rest_, [&] { return stage_ != Stage::idle; }, [&] { return step(); });
}

bool Shedding::step() {
  switch (stage_) {
    case Stage::look:
      return look();
    case Stage::ready:
      return ready();
    case Stage::wait:
      return wait();
    case Stage::move:
      return move();
    case Stage::raise:
      return raise();
    case Stage::release:
      if (move_.released() != Status::ok) return false;
      stage_ = Stage::ready;
      return true;
    case Stage::idle:
      return false;
  }
  return false;
}

/// What has been made elsewhere before the members changed is made again as after any death.
bool Shedding::ready() {
  if (state_.progress.is_gone(mover_)) {  // and so are the others
    stage_ = Stage::idle;
    return false;
  }
  if (state_.copies->lacks_room()) {
    answer(shed_word::kHasNoRoom);
    stage_ = Stage::idle;
    return false;
  }
  if (!state_.copies->complete()) return rest(Stage::ready);
  if (position_ >= below_) {
    answer(state_.progress.generation());
    stage_ = Stage::idle;
    return false;
  }
  if (groups_in_ != state_.progress.generation()) {
    groups_in_ = state_.progress.generation();
    groups_ = state_.groups_served({.mover = mover_, .to = 0, .is_shed = true});
  }
  const bool has_no_home = std::ranges::any_of(groups_, [&](const KeyGroup& group) {
    return group.now.second == mover_ && !group.then.second;
  });
  if (has_no_home) {
    answer(shed_word::kHasNoHome);
    stage_ = Stage::idle;
    return false;
  }
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  const std::uint64_t end = shape.end_of(position_, shape.depth_of(position_));
  raises_.begin();
  for (const KeyGroup& group : groups_)
    if (const std::uint64_t from = std::max(group.from, position_);
        from < std::min(group.below, end) && group.now.second == mover_ && !begins(group))
      raises_.add({.at = mover_,
                   .offset = stale_at(state_.homes[mover_].ranks, state_.members, group.home),
                   .from = from,
                   .below = from});
  stage_ = Stage::wait;
  return true;
}

/// Whether no other first home has made second copies of lower positions there: what is not old
/// before that one says so.
bool Shedding::begins(const KeyGroup& group) const noexcept {
  const Assumed unmarked{.mover = mover_, .to = 0, .ignores_marks = true};
  const KeyHomes lowest = state_.homes_of(group.home, 0, &unmarked);
  return lowest.first == state_.fabric.rank() || lowest.second != mover_;
}

/// Until such a home has come so far; before any lock is held (STO-M11).
bool Shedding::wait() {
  const Status status = raises_.step();
  if (status == Status::under_way) return false;
  if (status != Status::ok) return rest(Stage::ready);
  move_.begin(position_, groups_);
  stage_ = Stage::move;
  return true;
}

bool Shedding::move() {
  const Status status = move_.step();
  if (status == Status::under_way) return false;
  if (status == Status::busy) return rest(Stage::ready);
  if (status != Status::ok) {
    answer(shed_word::kHasNoRoom);
    stage_ = Stage::idle;
    return false;
  }
  raises_.begin();
  const std::uint64_t end = std::min(move_.end(), below_);
  for (const KeyGroup& group : groups_) {
    const std::uint64_t from = std::max(group.from, position_);
    const std::uint64_t below = std::min(group.below, end);
    if (from >= below || group.now.second != mover_) continue;
    if (group.then.second) state_.claim(raises_, *group.then.second, group.home, from, below);
    raises_.add({.at = mover_,
                 .offset = stale_at(state_.homes[mover_].ranks, state_.members, group.home),
                 .from = begins(group) ? 0 : from,
                 .below = below});
  }
  raises_.stop_waiting();
  stage_ = Stage::raise;
  return true;
}

/// From the mark on, changes of the chain's keys go to the other home.
bool Shedding::raise() {
  const Status status = raises_.step();
  if (status == Status::under_way) return false;
  if (status == Status::busy) {
    state_.begin_rest(rest_);
    return false;
  }
  std::byte* const at = move_.main();
  std::uint64_t& word = word_at(at + kDepthAt);
  const std::uint64_t before = memory::load(word);
  if (!departed_depth::is(before)) {  // or it has no first copies at all
    const std::uint64_t depth = shed_depth::is(before) ? shed_depth::depth(before) : before;
    memory::store(word, shed_depth::make(mover_, below_, depth));
    state_.learn_shed(state_.fabric.rank(), position_, memory::load(word));
  }
  position_ = move_.end();
  move_.release(memory::load(word_at(at + kVersionAt)));
  rest_ = {};
  stage_ = Stage::release;
  return true;
}

}  // namespace dunlin::store
