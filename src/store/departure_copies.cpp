#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/departure.hpp"
#include "store/state.hpp"

/// With two copies, the second half of a move: the other homes make elsewhere what is second here,
/// and then it is taken away (docs/store.md, STO-M10).
namespace dunlin::store {

using remote::Status;

bool Departure::step_of_copies() {
  switch (stage_) {
    case Stage::ask:
      return ask();
    case Stage::asked:
      if (!done_.finished()) return false;
      if (done_.failed()) return rest(Stage::ask);
      ++asks_;
      stage_ = Stage::ask;
      return true;
    case Stage::await:
      return await();
    case Stage::awaited:
      return awaited();
    case Stage::sweep:
      if (position_ >= state_.homes[state_.fabric.rank()].moved_below) return end(why_);
      move_.begin(position_, {});
      stage_ = Stage::sweeping;
      return true;
    case Stage::sweeping:
      return sweeping();
    default:
      return move_.released() == Status::ok && is_counted();
  }
}

bool Departure::ask() {
  if (!look_for_home()) {
    asks_ = 0;
    stage_ = Stage::await;
    return true;
  }
  bool must_wait = false;
  if (is_client(asks_, must_wait)) {
    ++asks_;
    return true;
  }
  if (must_wait) return rest(Stage::ask);
  word_ = shed_word::make(state_.fabric.rank(), round_);
  done_.reset();
  if (!state_.fabric
           .post(write(asks_, state_.index.id(), kShedAt, &word_, kWordBytes)
                     .notify(done_, Notify::remotely))
           .all())
    return rest(Stage::ask);
  stage_ = Stage::asked;
  return true;
}

/// If the members change meanwhile, all are asked again: what a home has made elsewhere may be
/// gone.
bool Departure::await() {
  if (generation_ != state_.progress.generation()) {
    asks_ = 0;
    ++round_;
    generation_ = state_.progress.generation();
    stage_ = Stage::ask;
    return true;
  }
  if (!look_for_home()) {
    const Rank own = state_.fabric.rank();
    const std::uint64_t below = state_.homes[own].moved_below;
    state_.learn_drained(own, below);
    memory::store(word_at(state_.index.memory().data() + kDrainedAt), below);
    return tell(told_word::kDrained, Stage::drained);
  }
  return post(read(asks_, state_.index.id(), kShedDoneAt, &word_, kWordBytes), Stage::awaited);
}

bool Departure::awaited() {
  if (!done_.finished()) return false;
  const std::uint64_t asked = shed_word::make(state_.fabric.rank(), round_);
  if (done_.failed()) return rest(Stage::await);
  if (!shed_word::is_answer_to(word_, asked)) return rest(Stage::ask);  // it has connected since
  const std::uint64_t generation = shed_word::generation(word_);
  if (generation == shed_word::kHasNoRoom) return end(Status::no_room);
  if (generation == shed_word::kHasNoHome) return end(Status::not_allowed);
  if (generation == 0) return rest(Stage::await);
  if (generation < (generation_ & UINT32_MAX)) {  // the home had not heard of the change yet
    ++round_;
    return rest(Stage::ask);
  }
  ++asks_;
  stage_ = Stage::await;
  return true;
}

/// Chain by chain, in own memory: no call looks here for these keys any more.
bool Departure::sweeping() {
  const Status status = move_.step();
  if (status == Status::under_way) return false;
  if (status != Status::ok) return rest(Stage::sweep);
  std::byte* const at = move_.main();
  const std::uint64_t below = state_.homes[state_.fabric.rank()].moved_below;
  state_.lose_counts(state_.drop_entries(
      at, std::nullopt, [&](std::uint64_t hash) { return IndexShape::position_of(hash) < below; }));
  memory::store(word_at(at + kDepthAt),
                memory::load(word_at(at + kDepthAt)) | departed_depth::kSwept);
  position_ = move_.end();
  move_.release(memory::load(word_at(at + kVersionAt)) + 1);
  stage_ = Stage::swept;
  return true;
}

}  // namespace dunlin::store
