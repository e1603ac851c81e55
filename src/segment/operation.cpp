#include <utility>

#include "segment/space.hpp"

/// The common part of operations, and those that ask other members: allocate, release, find.
namespace dunlin {

using remote::Status;

SegmentOperation::SegmentOperation(SegmentSpace& space) noexcept
    : InFlight(space.progress()), space_(space) {}

SegmentOperation::SegmentOperation(SegmentSpace& space, const Request& request, std::string name)
    : InFlight(space.progress()), space_(space), name_(std::move(name)) {
  start_as(request);
}

void SegmentOperation::start_as(const Request& request) noexcept {
  abandon();
  if (space_.port_->begin_at_once(*this, request)) return;
  reset(request);
  start(request.timeout_ns);
}

void SegmentOperation::reset(const Request& request) noexcept {
  request_ = request;
  stage_ = Stage::begin;
  using_ = using_name_ = locked_ = odd_ = changing_ = in_turn_ = false;
  posted_ = torn_ = 0;
  node_ = {};
  id_ = 0;
  final_word_ = 0;
  searched_ = 0;
  outcome_ = {.key = request.key};
}

Outcome SegmentOperation::result() const noexcept {
  Outcome outcome = outcome_;
  outcome.status = status();
  return outcome;
}

void SegmentOperation::advance() noexcept { space_.port_->advance(*this); }
void SegmentOperation::clean_up() noexcept { space_.port_->clean_up(*this); }

void SegmentState::advance(SegmentOperation& op) noexcept {
  using Kinds = SegmentOperation::Kind;
  switch (op.request_.kind) {
    case Kinds::none:
      return op.end(Status::ok);
    case Kinds::allocate:
    case Kinds::release:
    case Kinds::find:
      return advance_control(op);
    case Kinds::get:
    case Kinds::put:
      return advance_transfer(op);
    case Kinds::lock:
      return advance_lock(op);
    case Kinds::unlock:
      return unlock(op);
  }
}

void SegmentState::clean_up(SegmentOperation& op) noexcept {
  KnownSegment* const segment = op.using_ ? known(op.request_.key) : nullptr;
  ++counter_of(op.request_.kind);
  if (op.id_ != 0) asked.erase(op.id_);
  op.id_ = 0;
  if (op.node_.valid()) {
    if (op.changing_) locks.set_recovered(op.node_, true);
    if (op.changing_ && op.second_ != kNobody)
      locks.settle_also(op.node_, op.second_, op.second_offset_ + kVersionWord);
    locks.release(op.node_);
    op.node_ = {};
  } else if (op.changing_ && segment != nullptr) {
    segment->lock_odd = segment->unsettled = true;
    if (op.second_ != kNobody && segment->lock.valid())
      locks.settle_also(segment->lock, op.second_, op.second_offset_ + kVersionWord);
  }
  if (segment != nullptr) {
    --segment->users;
    if (segment->turn == &op) segment->turn = nullptr;
  }
  op.using_ = false;
}

KnownSegment* SegmentState::known(Key key) noexcept {
  if (key.home() >= known_at.size() || key.slot() >= known_at[key.home()].size()) return nullptr;
  KnownSegment& segment = known_at[key.home()][key.slot()];
  return segment.generation == key.generation() ? &segment : nullptr;
}

KnownSegment* SegmentState::resolve(SegmentOperation& op) noexcept {
  const Key key = op.request_.key;
  if (op.stage_ == Stage::ask && !has_answer(op)) return nullptr;
  if (key.home() >= progress.size() || key.generation() == 0) {
    op.end(Status::unknown);
    return nullptr;
  }
  KnownSegment* const segment = known(key);
  if (segment != nullptr && segment->lost) {
    op.end(Status::lost);
    return nullptr;
  }
  if (segment != nullptr && (!segment->closing || segment->is_locked_by(op.request_.owner))) {
    op.stage_ = Stage::begin;
    return segment;
  }
  const auto& slots = known_at[key.home()];
  const bool released_here =
      key.slot() < slots.size() && slots[key.slot()].released >= key.generation();
  if (segment != nullptr || released_here) {
    op.end(Status::released);
  } else if (gone(key.home())) {
    search(op);
  } else if (may_ask(op, key.home())) {
    ask(op, key.home(), {.type = SegmentMessage::Type::look_up, .key = key.value});
  }
  return nullptr;
}

/// Whether the segment is known by what was answered; if not, the operation has ended or asks on.
bool SegmentState::has_answer(SegmentOperation& op) noexcept {
  if (op.id_ != 0 && gone(op.asked_)) {
    asked.erase(op.id_);
    op.id_ = 0;
    op.answer_ = Status::unknown;
    search(op);
    return false;
  }
  if (op.id_ != 0) return false;
  if (op.answer_ == Status::ok) return true;
  const Key key = op.request_.key;
  if (op.answer_ == Status::busy) {  // it will take the segment over once it learns that it must
    ask(op, op.asked_, {.type = SegmentMessage::Type::look_up, .key = key.value});
  } else if (op.answer_ == Status::unknown && op.searched_ > 0) {
    search(op);
  } else {
    op.end(op.answer_);
  }
  return false;
}

/// The home is gone: the member with a second copy says so when it is asked. If the members change
/// meanwhile, all are asked again. A member that fails without an answer may have had the primary,
/// and another its copy: nothing is lost before the members have agreed on it.
void SegmentState::search(SegmentOperation& op) noexcept {
  const Key key = op.request_.key;
  const std::uint64_t generation = progress.generation();
  if (op.search_generation_ != generation) op.searched_ = 0;
  op.search_generation_ = generation;
  op.stage_ = Stage::begin;
  for (Rank rank = 0; rank < progress.size(); ++rank)
    if (is_undecided(rank)) return;
  while (++op.searched_ < progress.size()) {
    const Rank next = (key.home() + op.searched_) % progress.size();
    if (!gone(next) && !refused[next])
      return ask(op, next, {.type = SegmentMessage::Type::look_up, .key = key.value});
  }
  op.end(Status::lost);
}

/// Failed as seen from here, but the members have not agreed yet: the consequences have to wait.
bool SegmentState::is_undecided(Rank rank) const noexcept {
  return fabric.failed(rank) && !withdrawn[rank] && progress.contains(rank);
}

/// A message on a channel that the other side has not made would hold up all that follow it.
bool SegmentState::may_ask(SegmentOperation& op, Rank member) noexcept {
  if (refused[member]) op.end(Status::refused);
  return !refused[member] && fabric.connected(member, pool.id());
}

void SegmentState::ask(SegmentOperation& op, Rank member, const SegmentMessage& question) noexcept {
  SegmentMessage message = question;
  message.id = op.id_ = next_id++;
  op.asked_ = member;
  op.stage_ = Stage::ask;
  asked.emplace(op.id_, &op);
  channel.send(member, message);
}

bool SegmentState::waits_for_answer(SegmentOperation& op) noexcept {
  if (op.id_ == 0) return false;
  if (gone(op.asked_)) op.end(Status::lost);
  return true;
}

/// Allocate asks the home, then the directory of its name; release unbinds the name in the end.
void SegmentState::advance_control(SegmentOperation& op) noexcept {
  using Kinds = SegmentOperation::Kind;
  using Types = SegmentMessage::Type;
  SegmentOperation::Request& request = op.request_;
  const bool first = op.stage_ == Stage::begin || op.searched_ > 0;
  SegmentMessage message{.type = Types::allocate, .key = request.key.value};
  message.set_name(op.name_);
  message.copies = static_cast<std::uint8_t>(request.copies);
  if (first) {
    const KnownSegment* segment = known(request.key);
    Rank to = request.kind == Kinds::find      ? directory_of(op.name_)
              : request.kind == Kinds::release ? request.key.home()
                                               : request.place;
    if (request.kind == Kinds::release) {
      if (to >= progress.size() || request.key.generation() == 0) return op.end(Status::unknown);
      if (segment == nullptr && gone(to)) {
        segment = resolve(op);
        if (segment == nullptr) return;
      }
      if (segment != nullptr) to = segment->primary;
      if (segment != nullptr && segment->unsure) return;  // its holder is not decided
      op.searched_ = 0;
    }
    if (gone(to)) return op.end(Status::lost);
    if (request.kind == Kinds::find) message.type = Types::find;
    if (request.kind == Kinds::release) {
      message.type = Types::release;
      if (KnownSegment* const held_here = known(request.key);
          held_here != nullptr && held_here->is_locked_by(request.owner)) {
        locks.release(held_here->lock);
        held_here->lock = {};
      }
    }
    message.bytes = request.bytes;
    message.coherence = request.coherence;
    message.stale_ns = request.stale_ns;
    message.versions = request.versions;
    if (may_ask(op, to)) ask(op, to, message);
    return;
  }
  if (waits_for_answer(op)) return;
  const bool is_named = request.kind != Kinds::find && !op.name_.empty();
  if (op.answer_ == Status::ok && is_named && !op.using_name_) {
    op.using_name_ = true;
    request.key = op.outcome_.key;
    const Rank directory = directory_of(op.name_);
    message.key = request.key.value;
    message.type = request.kind == Kinds::allocate ? Types::bind : Types::unbind;
    message.set_name(op.name_);
    if (!gone(directory)) return ask(op, directory, message);
    if (request.kind == Kinds::allocate) op.answer_ = Status::lost;
  }
  if (request.kind == Kinds::allocate && op.using_name_ && op.answer_ != Status::ok)
    channel.send(request.key.home(),
                 SegmentMessage{.type = Types::release, .key = request.key.value});
  op.end(op.answer_);
}

// --- posting -------------------------------------------------------------------------------------

bool SegmentState::post(SegmentOperation& op, std::span<const Operation> batch,
                        std::size_t& accepted) noexcept {
  const Posted posted = fabric.post(batch);
  accepted += posted.accepted;
  if (posted.all()) return true;
  const bool for_ever =
      posted.refusal != Refusal::queue_full && posted.refusal != Refusal::not_connected;
  const KnownSegment& segment = *known(op.request_.key);
  if (for_ever || (segment.copies < 2 && gone(segment.primary))) {
    fabric.abandon(op.completion_);
    op.end(for_ever ? Status::out_of_range : Status::lost);
  }
  return false;
}

bool SegmentState::read(SegmentOperation& op, const KnownSegment& segment, std::uint64_t offset,
                        void* to, std::size_t bytes) noexcept {
  std::size_t accepted = 0;
  Operation one =
      dunlin::read(segment.primary, pool.id(), offset, to, bytes).notify(op.completion_);
  one.more = gathers;
  return post(op, std::span(&one, 1), accepted);
}

}  // namespace dunlin
