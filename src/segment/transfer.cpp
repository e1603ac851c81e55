#include <algorithm>
#include <cstring>

#include "fault_injection.hpp"
#include "segment/space.hpp"

/// Gets, puts and locks: the protocol of each coherence, in the steps that docs/segment.md lists.
namespace dunlin {

using remote::Locks;
using remote::Status;

namespace {

/// So often a get without a lock may meet a put; then it takes the lock, to be sure to end.
constexpr std::uint8_t kTornGets = 8;

bool lies_alike(const void* memory, std::uint64_t offset) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % kWordBytes == offset % kWordBytes;
}

}  // namespace

void SegmentState::advance_transfer(SegmentOperation& op) noexcept {
  if (op.stage_ == Stage::begin || op.stage_ == Stage::ask) begin_transfer(op);
  if (op.finished() || !op.using_) return;  // it asks the home
  KnownSegment* const segment = known(op.request_.key);
  if (segment == nullptr) return;
  while (!op.finished() && op.completion_.finished()) {
    if (!has_place(op, *segment) || !has_turn(op, *segment)) return;
    const std::uint64_t version_word = segment->offset + kVersionWord;
    const SegmentOperation::Request& request = op.request_;
    switch (op.stage_) {
      case Stage::begin:
      case Stage::ask:
        return;
      case Stage::acquire:
        if (!acquire(op, *segment)) return;
        break;
      case Stage::read_before:
        if (!read_version(op, *segment)) return;
        op.stage_ = Stage::got_before;
        break;
      case Stage::got_before:
        if (request.kind == SegmentOperation::Kind::put) {
          got_version_to_put(op, *segment);
        } else {
          got_version(op, *segment);
        }
        break;
      case Stage::read_data:
        op.posted_at_ns_ = segment->coherence == Coherence::temporal ? fabric.now_ns() : 0;
        if (!read(op, *segment,
                  segment->data_at(segment->offset, op.data_version_) + request.offset,
                  request.memory, request.bytes))
          return;
        op.stage_ = Stage::got_data;
        break;
      case Stage::got_data:
        got_data(op, *segment);
        break;
      case Stage::read_after:
        if (!read(op, *segment, version_word, &op.second_word_, 8)) return;
        op.stage_ = Stage::got_after;
        break;
      case Stage::got_after:
        got_version_again(op, *segment);
        break;
      case Stage::read_old:
        if (!read(op, *segment, segment->data_at(segment->offset, op.data_version_ - 1),
                  segment->merged.data(), segment->bytes))
          return;
        op.stage_ = Stage::got_old;
        break;
      case Stage::got_old:
        std::memcpy(segment->merged.data() + request.offset, request.memory, request.bytes);
        op.stage_ = Stage::change;
        break;
      case Stage::change:
        if (!change(op, *segment)) return;
        break;
    }
  }
}

/// Under null, with one copy, a get or put is one operation of the fabric, and ends here if that
/// does.
bool SegmentState::begin_at_once(SegmentOperation& op,
                                 const SegmentOperation::Request& request) noexcept {
  const bool is_get = request.kind == SegmentOperation::Kind::get;
  if (!is_get && request.kind != SegmentOperation::Kind::put) return false;
  KnownSegment* const segment = known(request.key);
  if (segment == nullptr || segment->coherence != Coherence::null || segment->copies > 1 ||
      segment->lost || segment->closing || segment->lock.valid() || progress.was_stopped())
    return false;
  // Whatever is wrong, the steps tell.
  if (request.bytes == 0 || request.bytes > segment->bytes ||
      request.offset > segment->bytes - request.bytes ||
      !lies_alike(request.memory, request.offset) || request.known_version != UINT64_MAX ||
      request.wanted_version != UINT64_MAX)
    return false;
  const std::uint64_t at = segment->offset + kDataOffset + request.offset;
  op.completion_.reset();
  Operation one =
      is_get ? dunlin::read(segment->primary, pool.id(), at, request.memory, request.bytes)
                   .notify(op.completion_)
             : dunlin::write(segment->primary, pool.id(), at, request.memory, request.bytes)
                   .notify(op.completion_, Notify::remotely);
  one.more = gathers;
  if (!fabric.post(one).all()) return false;
  if (op.completion_.finished() && !op.completion_.failed()) {
    op.request_.kind = request.kind;  // what describe() needs, and no more
    op.request_.key = request.key;
    op.request_.bytes = request.bytes;
    op.request_.offset = request.offset;
    op.outcome_ = {.key = request.key};
    op.begin_and_end(Status::ok);
    ++counter_of(request.kind);
    return true;
  }
  op.reset(request);
  ++segment->users;
  op.using_ = true;
  op.placement_ = segment->placement;
  op.data_version_ = 0;
  op.stage_ = is_get ? Stage::got_data : Stage::change;
  op.posted_ = is_get ? 0 : kUnversionedPosted;
  op.start_posted(request.timeout_ns);
  return true;
}

void SegmentState::begin_transfer(SegmentOperation& op) noexcept {
  KnownSegment* const segment = resolve(op);
  if (segment == nullptr) return;
  const SegmentOperation::Request& request = op.request_;
  const bool is_get = request.kind == SegmentOperation::Kind::get;
  if (request.bytes == 0 || request.bytes > segment->bytes ||
      request.offset > segment->bytes - request.bytes)
    return op.end(Status::out_of_range);
  if (!lies_alike(request.memory, request.offset)) return op.end(Status::misaligned);
  if (request.known_version != UINT64_MAX && segment->coherence != Coherence::version &&
      segment->coherence != Coherence::temporal && !segment->is_delta())
    return op.end(Status::not_allowed);
  if (request.wanted_version != UINT64_MAX && !segment->is_delta())
    return op.end(Status::not_allowed);
  if (is_get && take_copy(op, *segment)) return op.end(Status::ok);
  ++segment->users;
  op.using_ = true;
  op.placement_ = segment->placement;
  op.locked_ = segment->is_locked_by(request.owner);
  op.odd_ = op.locked_ && segment->lock_odd;
  op.data_version_ = 0;
  const bool locks_itself =
      is_get ? segment->coherence == Coherence::read || segment->coherence == Coherence::strict
             : segment->puts_lock();
  op.stage_ = locks_itself && !op.locked_ ? Stage::acquire : first_stage(op, *segment);
}

/// Of what follows the lock, if there is one. An abandoned put under this lock may have ended all
/// the same: only the word knows.
SegmentState::Stage SegmentState::first_stage(const SegmentOperation& op,
                                              const KnownSegment& segment) noexcept {
  const bool must_look = op.odd_ && segment.puts_lock();
  if (op.request_.kind == SegmentOperation::Kind::put)
    return must_look || segment.is_delta() ? Stage::read_before : Stage::change;
  return must_look || segment.versioned() ? Stage::read_before : Stage::read_data;
}

/// With a second copy, an operation whose member fails waits until the members have agreed, and
/// until all have parted from it; then it begins anew at the new primary, but keeps its lock.
bool SegmentState::has_place(SegmentOperation& op, KnownSegment& segment) noexcept {
  if (segment.copies < 2) {
    if (!op.completion_.failed()) return true;
    op.end(Status::lost);
    return false;
  }
  if (segment.lost) {
    op.end(Status::lost);
    return false;
  }
  if (!locks.repairing() || is_injected(FaultInjection::moved_is_read_too_early))
    segment.moved = false;
  if (segment.moved || segment.unsure) return false;
  if (op.placement_ == segment.placement) return !op.completion_.failed();
  op.placement_ = segment.placement;
  const bool only_marked = op.changing_ && op.posted_ == 1 && op.final_word_ == 0;
  if (only_marked && !op.completion_.failed()) op.final_word_ = op.first_word_ + 2;
  op.completion_.reset();
  op.posted_ = op.torn_ = 0;
  if (op.stage_ == Stage::acquire) return true;
  if (op.request_.kind == SegmentOperation::Kind::lock) {
    op.stage_ = Stage::read_before;
    return true;
  }
  op.odd_ = op.locked_;  // it must look at the word there
  op.stage_ = first_stage(op, segment);
  return true;
}

/// The operations of a process under one lock of a segment run one by one.
bool SegmentState::has_turn(SegmentOperation& op, KnownSegment& segment) noexcept {
  if (!op.locked_ || op.in_turn_ || !segment.puts_lock()) return true;
  if (segment.turn != nullptr) return false;
  segment.turn = &op;
  op.in_turn_ = true;
  return true;
}

/// Before a put, by an atomic: it comes behind what this process has posted there before (F1).
bool SegmentState::read_version(SegmentOperation& op, const KnownSegment& segment) noexcept {
  const std::uint64_t offset = segment.offset + kVersionWord;
  if (op.request_.kind == SegmentOperation::Kind::get)
    return read(op, segment, offset, &op.first_word_, 8);
  std::size_t accepted = 0;
  const Operation one =
      fetch_add(segment.primary, pool.id(), offset, 0, &op.first_word_).notify(op.completion_);
  return post(op, std::span(&one, 1), accepted);
}

bool SegmentState::acquire(SegmentOperation& op, const KnownSegment& segment) noexcept {
  const bool is_lock = op.request_.kind == SegmentOperation::Kind::lock;
  if (!op.node_.valid())
    op.node_ =
        locks.acquire(segment.primary, segment.offset + kLockWord, is_lock && op.request_.try_only);
  if (!op.node_.valid()) return false;  // too many at once
  switch (locks.answer(op.node_)) {
    case Locks::Answer::waiting:
      return false;
    case Locks::Answer::busy:
      op.end(Status::busy);
      return false;
    case Locks::Answer::lost:
      if (segment.copies < 2) op.end(Status::lost);  // else it may have another home soon
      return false;
    case Locks::Answer::held:
      break;
  }
  op.locked_ = true;
  op.outcome_.recovered = locks.recovered(op.node_);
  if (op.request_.kind == SegmentOperation::Kind::lock) {
    op.stage_ = op.outcome_.recovered && segment.puts_lock() ? Stage::read_before : Stage::change;
    return true;
  }
  op.odd_ = op.outcome_.recovered;
  op.stage_ = first_stage(op, segment);
  return true;
}

void SegmentState::got_version(SegmentOperation& op, KnownSegment& segment) noexcept {
  const SegmentOperation::Request& request = op.request_;
  const std::uint64_t version = op.first_word_ / 2;
  if (op.first_word_ % 2 != 0) {  // no put is under way under the lock, so one was cut off
    if (op.locked_) return op.end(Status::half_written);
    return try_again(op);
  }
  segment.seen_version = std::max(segment.seen_version, version);
  if (version == request.known_version) {
    op.outcome_.version = version;
    op.outcome_.unchanged = true;
    return op.end(Status::ok);
  }
  op.data_version_ = request.wanted_version == UINT64_MAX ? version : request.wanted_version;
  if (op.data_version_ > version ||
      (segment.is_delta() && version - op.data_version_ >= segment.versions))
    return op.end(Status::not_kept);
  op.stage_ = Stage::read_data;
}

/// Whole: the version has not changed; or, under delta, too little for the bytes' place to be
/// written again.
void SegmentState::got_version_again(SegmentOperation& op, KnownSegment& segment) noexcept {
  const std::uint64_t version = op.second_word_ / 2;
  if (segment.is_delta()) {
    segment.seen_version = std::max(segment.seen_version, version);
    const bool reused = version - op.data_version_ >= segment.versions;
    if (reused && !is_injected(FaultInjection::reused_slot_is_taken)) {
      if (op.request_.wanted_version != UINT64_MAX) return op.end(Status::not_kept);
      op.data_version_ = version;
      op.stage_ = Stage::read_data;
      return;
    }
  } else if (op.second_word_ != op.first_word_ && !is_injected(FaultInjection::torn_get_is_taken)) {
    return try_again(op);
  }
  op.outcome_.version = op.data_version_;
  keep_copy(op, segment);
  op.end(Status::ok);
}

void SegmentState::got_data(SegmentOperation& op, KnownSegment& segment) noexcept {
  if (segment.versioned() && !op.locked_) {
    op.stage_ = Stage::read_after;
    return;
  }
  if (segment.versioned()) {
    op.outcome_.version = op.data_version_;
    keep_copy(op, segment);
  }
  op.end(Status::ok);
}

void SegmentState::try_again(SegmentOperation& op) noexcept {
  op.stage_ = ++op.torn_ < kTornGets ? Stage::read_before : Stage::acquire;
}

// --- temporal: the copy --------------------------------------------------------------------------

bool SegmentState::take_copy(SegmentOperation& op, const KnownSegment& segment) noexcept {
  if (segment.coherence != Coherence::temporal || segment.copy.empty()) return false;
  if (fabric.now_ns() - segment.copied_at_ns > segment.stale_ns) return false;
  const SegmentOperation::Request& request = op.request_;
  op.outcome_.version = segment.copy_version;
  op.outcome_.unchanged = segment.copy_version == request.known_version;
  if (!op.outcome_.unchanged)
    std::memcpy(request.memory, segment.copy.data() + request.offset, request.bytes);
  return true;
}

void SegmentState::keep_copy(const SegmentOperation& op, KnownSegment& segment) {
  const SegmentOperation::Request& request = op.request_;
  if (segment.coherence != Coherence::temporal || request.bytes != segment.bytes) return;
  segment.copy.assign(request.memory, request.memory + request.bytes);
  segment.copy_version = op.outcome_.version;
  segment.copied_at_ns = op.posted_at_ns_;
}

// --- locks ---------------------------------------------------------------------------------------

void SegmentState::advance_lock(SegmentOperation& op) noexcept {
  if (op.stage_ == Stage::begin || op.stage_ == Stage::ask) {
    KnownSegment* const segment = resolve(op);
    if (segment == nullptr) return;
    if (segment->is_locked_by(op.request_.owner)) return op.end(Status::already_held);
    ++segment->users;
    op.using_ = true;
    op.placement_ = segment->placement;
    op.stage_ = Stage::acquire;
  }
  KnownSegment& segment = *known(op.request_.key);
  if (!has_place(op, segment)) return;
  if (op.stage_ == Stage::acquire && !acquire(op, segment)) return;
  if (op.stage_ == Stage::read_before) {
    if (!read(op, segment, segment.offset + kVersionWord, &op.first_word_, 8)) return;
    op.stage_ = Stage::got_before;
    if (!op.completion_.finished() || op.completion_.failed()) return;  // looked at again
  }
  const bool asked_version = op.stage_ == Stage::got_before;
  segment.lock = op.node_;
  segment.lock_owner = op.request_.owner;
  segment.lock_odd = asked_version && op.first_word_ % 2 != 0;
  op.node_ = {};
  op.end(Status::ok);
}

/// A holder that was told of its predecessor's death has repaired the data, unless it is still half
/// written.
void SegmentState::unlock(SegmentOperation& op) noexcept {
  KnownSegment* const segment = known(op.request_.key);
  if (segment == nullptr || !segment->is_locked_by(op.request_.owner))
    return op.end(Status::not_held);
  locks.set_recovered(segment->lock, segment->lock_odd || op.request_.holder_died);
  locks.release(segment->lock);
  segment->lock = {};
  segment->unsettled = false;  // its successor waits until it is settled
  op.end(Status::ok);
}

}  // namespace dunlin
