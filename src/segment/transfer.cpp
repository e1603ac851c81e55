#include <cstring>

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
  while (!op.finished() && op.completion_.finished()) {
    KnownSegment* const segment = known(op.request_.key);
    if (segment == nullptr || !op.using_) return;  // asked its home
    if (op.completion_.failed()) return op.end(Status::lost);
    const std::uint64_t words = segment->offset;
    const SegmentOperation::Request& request = op.request_;
    switch (op.stage_) {
      case Stage::begin:
      case Stage::ask:
        return;
      case Stage::acquire:
        if (!acquire(op, *segment)) return;
        break;
      case Stage::read_before:
        if (!read_version(op, words + kVersionWord)) return;
        op.stage_ = Stage::got_before;
        break;
      case Stage::got_before:
        got_version(op, *segment);
        break;
      case Stage::read_data:
        op.posted_at_ns_ = segment->coherence == Coherence::temporal ? fabric.now_ns() : 0;
        if (!read(op, words + kDataOffset + request.offset, request.memory, request.bytes)) return;
        op.stage_ = Stage::got_data;
        break;
      case Stage::got_data:
        got_data(op, *segment);
        break;
      case Stage::read_after:
        if (!read(op, words + kVersionWord, &op.second_word_, 8)) return;
        op.stage_ = Stage::got_after;
        break;
      case Stage::got_after:
        if (op.second_word_ != op.first_word_) {
          try_again(op);
        } else {
          op.outcome_.version = op.first_word_ / 2;
          keep_copy(op, *segment);
          op.end(Status::ok);
        }
        break;
      case Stage::change:
        if (!change(op, *segment)) return;
        break;
    }
  }
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
      segment->coherence != Coherence::temporal)
    return op.end(Status::not_allowed);
  if (is_get && take_copy(op, *segment)) return op.end(Status::ok);
  ++segment->users;
  op.using_ = true;
  op.locked_ = segment->lock.valid();
  op.odd_ = op.locked_ && segment->lock_odd;
  const bool locks_itself =
      is_get ? segment->coherence == Coherence::read || segment->coherence == Coherence::strict
             : segment->puts_lock();
  if (locks_itself && !op.locked_) {
    op.stage_ = Stage::acquire;
  } else if (!is_get) {
    // An abandoned put under this lock may have ended all the same: only the word knows.
    op.stage_ = op.odd_ && segment->puts_lock() ? Stage::read_before : Stage::change;
  } else {
    op.stage_ = segment->versioned() ? Stage::read_before : Stage::read_data;
  }
}

/// Before a put, by an atomic: it comes behind what this process has posted there before (F1).
bool SegmentState::read_version(SegmentOperation& op, std::uint64_t offset) noexcept {
  if (op.request_.kind == SegmentOperation::Kind::get) return read(op, offset, &op.first_word_, 8);
  std::size_t accepted = 0;
  const Operation one = fetch_add(op.request_.key.home(), pool.id(), offset, 0, &op.first_word_)
                            .notify(op.completion_);
  return post(op, std::span(&one, 1), accepted);
}

bool SegmentState::acquire(SegmentOperation& op, const KnownSegment& segment) noexcept {
  const bool is_lock = op.request_.kind == SegmentOperation::Kind::lock;
  if (!op.node_.valid())
    op.node_ = locks.acquire(op.request_.key.home(), segment.offset + kLockWord,
                             is_lock && op.request_.try_only);
  if (!op.node_.valid()) return false;  // too many at once
  switch (locks.answer(op.node_)) {
    case Locks::Answer::waiting:
      return false;
    case Locks::Answer::busy:
      op.end(Status::busy);
      return false;
    case Locks::Answer::lost:
      op.end(Status::lost);
      return false;
    case Locks::Answer::held:
      break;
  }
  op.locked_ = true;
  op.outcome_.recovered = locks.recovered(op.node_);
  const bool is_get = op.request_.kind == SegmentOperation::Kind::get;
  const bool asks = segment.versioned() && is_get;
  if (asks || (op.outcome_.recovered && segment.puts_lock())) {
    op.stage_ = Stage::read_before;
  } else {
    op.stage_ = is_get ? Stage::read_data : Stage::change;
  }
  return true;
}

/// An odd word under the lock: nobody is putting, so a put was cut off.
void SegmentState::got_version(SegmentOperation& op, KnownSegment& segment) noexcept {
  const SegmentOperation::Request& request = op.request_;
  const bool odd = op.first_word_ % 2 != 0;
  if (request.kind == SegmentOperation::Kind::put) {
    const bool whole = request.offset == 0 && request.bytes == segment.bytes;
    if (odd && !whole && op.node_.valid()) return op.end(Status::half_written);
    op.odd_ = odd;
    op.stage_ = Stage::change;
  } else if (odd) {
    if (op.locked_) return op.end(Status::half_written);
    try_again(op);
  } else if (op.first_word_ / 2 == request.known_version) {
    op.outcome_.version = request.known_version;
    op.outcome_.unchanged = true;
    op.end(Status::ok);
  } else {
    op.stage_ = Stage::read_data;
  }
}

void SegmentState::got_data(SegmentOperation& op, KnownSegment& segment) noexcept {
  if (segment.versioned() && !op.locked_) {
    op.stage_ = Stage::read_after;
    return;
  }
  if (op.locked_ && op.odd_) return op.end(Status::half_written);
  if (segment.versioned()) {
    op.outcome_.version = op.first_word_ / 2;
    keep_copy(op, segment);
  }
  op.end(Status::ok);
}

void SegmentState::try_again(SegmentOperation& op) noexcept {
  op.stage_ = ++op.torn_ < kTornGets ? Stage::read_before : Stage::acquire;
}

// --- puts ----------------------------------------------------------------------------------------

/// One write; or, where puts have versions, the word made odd, the data, and the word made even
/// again: signals all three, so they land in this order. What the fabric sends later than it posts
/// must be placed before the last of them is posted: abandoned in between, it would leave torn data
/// behind an even word. Returns whether it went on.
bool SegmentState::change(SegmentOperation& op, KnownSegment& segment) noexcept {
  const SegmentOperation::Request& request = op.request_;
  const Rank home = request.key.home();
  const std::uint64_t version = segment.offset + kVersionWord;
  const Operation data = write(home, pool.id(), segment.offset + kDataOffset + request.offset,
                               request.memory, request.bytes)
                             .notify(op.completion_, Notify::remotely);
  const Operation up =
      fetch_add(home, pool.id(), version, 1, nullptr).notify(op.completion_, Notify::remotely);
  const Operation done = fetch_add(home, pool.id(), version, 1, &op.second_word_)
                             .notify(op.completion_, Notify::remotely);
  const std::array<Operation, 3> steps{up, data, done};
  const bool versions = segment.puts_lock();
  const std::size_t end = versions ? 3 : 2;
  if (op.posted_ == 0) op.posted_ = versions && !op.odd_ ? 0 : 1;
  if (op.posted_ >= end) {
    changed(op, segment);
    return true;
  }
  const bool captured = request.bytes <= fabric.properties().max_inline_bytes;
  const std::size_t now = versions && !captured && op.posted_ < 2 ? 2 : end;
  std::size_t accepted = 0;
  post(op, std::span(steps).first(now).subspan(op.posted_), accepted);
  op.posted_ = static_cast<std::uint8_t>(op.posted_ + accepted);
  op.changing_ = versions && op.posted_ > 0 && !op.finished();
  return accepted > 0;
}

void SegmentState::changed(SegmentOperation& op, KnownSegment& segment) noexcept {
  op.changing_ = false;
  if (segment.puts_lock()) {
    op.outcome_.version = (op.second_word_ + 1) / 2;
    if (op.node_.valid()) locks.set_recovered(op.node_, false);
    segment.lock_odd = false;
    segment.copy.clear();
  }
  op.end(Status::ok);
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
    if (segment->lock.valid()) return op.end(Status::already_held);
    ++segment->users;
    op.using_ = true;
    op.stage_ = Stage::acquire;
  }
  KnownSegment& segment = *known(op.request_.key);
  if (op.stage_ == Stage::acquire && !acquire(op, segment)) return;
  if (op.stage_ == Stage::read_before) {
    if (!read(op, segment.offset + kVersionWord, &op.first_word_, 8)) return;
    op.stage_ = Stage::got_before;
    if (!op.completion_.finished()) return;
  }
  const bool asked_version = op.stage_ == Stage::got_before;
  segment.lock = op.node_;
  segment.lock_odd = asked_version && op.first_word_ % 2 != 0;
  op.node_ = {};
  op.end(Status::ok);
}

/// Who was told that the last holder died has seen to it, unless the data is still half written.
void SegmentState::unlock(SegmentOperation& op) noexcept {
  KnownSegment* const segment = known(op.request_.key);
  if (segment == nullptr || !segment->lock.valid()) return op.end(Status::not_held);
  locks.set_recovered(segment->lock, segment->lock_odd);
  locks.release(segment->lock);
  segment->lock = {};
  op.end(Status::ok);
}

}  // namespace dunlin
