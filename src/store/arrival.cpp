#include "store/arrival.hpp"

#include <algorithm>
#include <limits>

#include "store/state.hpp"
#include "store/steps.hpp"

namespace dunlin::store {

using remote::Status;

Arrival::~Arrival() { state_.fabric.abandon(done_); }

void Arrival::begin() {
  if (stage_ != Stage::ended) return;
  status_ = Status::under_way;
  looks_at_ = 0;
  has_looked_ = has_found_ = has_refused_ = false;
  refusals_.clear();
  began_ns_ = state_.fabric.now_ns();
  rest_ = {};
  stage_ = Stage::look;
  state_.look_again_soon();
}

bool Arrival::end(Status status) {
  state_.fabric.abandon(done_);
  done_.reset();
  stage_ = Stage::ended;
  status_ = status;
  state_.growth->look_at_share();
  return false;
}

/// Again from that stage on, a little later.
bool Arrival::rest(Stage next) {
  stage_ = next;
  state_.begin_rest(rest_);
  return false;
}

/// What had moved before the home's death stays here.
void Arrival::look_at_members() {
  if (stage_ > Stage::looked && stage_ < Stage::ended && state_.is_gone(home_)) end(Status::lost);
}

std::size_t Arrival::poll() {
  if (stage_ == Stage::ended || state_.progress.stopped()) return 0;
  return take_steps(
      state_, rest_, [&] { return stage_ != Stage::ended; }, [&] { return step(); });
}

bool Arrival::step() {
  if (!done_.finished()) return false;
  switch (stage_) {
    case Stage::look:
      return look();
    case Stage::looked:
      return looked();
    case Stage::ask:
      return swap(0, ask_word::make(state_.fabric.rank()), Stage::asked);
    case Stage::asked:
      return asked();
    case Stage::wait:
      return post(read(home_, state_.index.id(), kAskAt, &word_, kWordBytes), Stage::waited);
    case Stage::waited:
      return waited();
    case Stage::thank:
      return swap(word_, 0, Stage::thanked);
    case Stage::thanked:
      return thanked();
    case Stage::ended:
      return false;
  }
  return false;
}

bool Arrival::post(const Operation& operation, Stage next) {
  done_.reset();
  if (!state_.fabric.post(operation.notify(done_)).all()) return rest(stage_);
  stage_ = next;
  return true;
}

bool Arrival::swap(std::uint64_t from, std::uint64_t to, Stage next) {
  return post(compare_swap(home_, state_.index.id(), kAskAt, from, to, &header_[0]), next);
}

bool Arrival::look_anew() {
  looks_at_ = 0;
  has_found_ = false;
  return rest(Stage::look);
}

bool Arrival::look() {
  if (state_.homes[state_.fabric.rank()].moved_below != 0) return end(Status::not_allowed);
  for (; looks_at_ < state_.members; ++looks_at_) {
    const bool is_refused = state_.homes[looks_at_].refused;
    has_refused_ = has_refused_ || is_refused;
    if (state_.is_gone(looks_at_) || is_refused) continue;
    if (state_.fabric.connected(looks_at_, state_.index.id()))
      return post(read(looks_at_, state_.index.id(), 0, header_.data(), sizeof header_),
                  Stage::looked);
    // Its store has ended before this member came, or is yet to come.
    if (state_.fabric.now_ns() - began_ns_ < kConnectNs) return rest(Stage::look);
  }
  if (has_found_ && state_.is_gone(home_)) return look_anew();  // it has died meanwhile
  if (!has_found_)
    return end(has_looked_ ? Status::not_allowed : has_refused_ ? Status::refused : Status::lost);
  stage_ = Stage::ask;
  return true;
}

/// A home gives once. One that has begun to give keys to this member goes on with it.
bool Arrival::looked() {
  if (done_.failed()) return rest(Stage::look);  // until the members agree
  has_looked_ = true;
  const auto word = [&](std::uint64_t at) { return header_[at / kWordBytes]; };
  const std::uint64_t moved = word(kMovedAt);
  const bool has_more =
      moved < kGivenPositions || (state_.has_copies() && word(kDrainedAt) < kGivenPositions);
  const bool goes_on =
      moved != 0 && has_more && leave_word::to(word(kLeaveAt)) == state_.fabric.rank();
  const auto keys = static_cast<std::int64_t>(word(kKeysAt));
  state_.learn_move(looks_at_, moved, leave_word::to(word(kLeaveAt)));
  state_.learn_drained(looks_at_, word(kDrainedAt));
  const bool may_give = std::ranges::find(refusals_, looks_at_) == refusals_.end();
  if (may_give && (goes_on || (moved == 0 && (!has_found_ || keys > most_keys_)))) {
    has_found_ = true;
    most_keys_ = goes_on ? std::numeric_limits<std::int64_t>::max() : keys;
    home_ = looks_at_;
  }
  ++looks_at_;
  stage_ = Stage::look;
  return true;
}

bool Arrival::asked() {
  if (done_.failed()) return rest(Stage::ask);
  const std::uint64_t before = header_[0];
  // Its own word: of a call before this one.
  if (before == 0 || ask_word::by(before) == state_.fabric.rank()) {
    stage_ = Stage::wait;
    return true;
  }
  return look_anew();  // the home may have given its keys by then
}

bool Arrival::waited() {
  if (done_.failed()) return rest(Stage::wait);
  if (ask_word::by(word_) != state_.fabric.rank()) return look_anew();  // its word has gone
  if (!ask_word::is_answered(word_)) return rest(Stage::wait);
  stage_ = Stage::thank;
  return true;
}

/// The home may have left, or given its keys to another member, before it saw this one's word. Or,
/// with two copies, this member would get both of a key.
bool Arrival::thanked() {
  if (done_.failed()) return rest(Stage::thank);
  const auto status = static_cast<Status>(ask_word::status(word_));
  if (status != Status::not_allowed) return end(status);
  refusals_.push_back(home_);
  return look_anew();
}

}  // namespace dunlin::store
