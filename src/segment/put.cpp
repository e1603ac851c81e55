#include <array>

#include "fault_injection.hpp"
#include "segment/space.hpp"

/// Puts: the writes once the lock is held, to one copy or to two.
namespace dunlin {

using remote::Status;

namespace {

/// Under delta the bytes go into a slot that no member reads, so no word is made odd. A word that
/// is odd already stays so.
bool is_needed(PutStep step, const KnownSegment& segment, bool odd, Rank second) noexcept {
  switch (step) {
    case PutStep::mark:
      return !segment.is_delta() && !odd;
    case PutStep::second_mark:
    case PutStep::second_data:
    case PutStep::second_unmark:
      return second != kNobody && !is_injected(FaultInjection::second_copy_is_left_out);
    case PutStep::data:
    case PutStep::unmark:
      return true;
  }
  return false;
}

/// Whether all steps before must be placed. The second copy needs the word that was read; it is
/// complete before the primary one has the data. Data that the fabric sends later than it takes
/// must be placed before the word says so: abandoned in between, it would leave torn data behind.
bool is_behind_all(PutStep step, bool captured, Rank second) noexcept {
  switch (step) {
    case PutStep::second_mark:
      return true;
    case PutStep::data:
      return second != kNobody;
    case PutStep::second_unmark:
    case PutStep::unmark:
      return !captured;
    default:
      return false;
  }
}

}  // namespace

/// Under the lock. An odd word says that a put was cut off, this one or another.
void SegmentState::got_version_to_put(SegmentOperation& op, KnownSegment& segment) noexcept {
  const SegmentOperation::Request& request = op.request_;
  const std::uint64_t word = op.first_word_;
  const bool whole = request.offset == 0 && request.bytes == segment.bytes;
  if (op.final_word_ != 0 && word == op.final_word_) {  // done, before the primary died
    op.outcome_.version = word / 2;
    op.second_word_ = word - 1;
    return changed(op, segment);
  }
  if (segment.is_delta()) {
    op.data_version_ = word / 2 + 1;
    op.final_word_ = word + 2;
    op.stage_ = whole ? Stage::change : Stage::read_old;
    if (!whole) segment.merged.resize(segment.bytes);
    return;
  }
  const bool odd = word % 2 != 0;
  const bool own = op.final_word_ != 0 && word + 1 == op.final_word_;
  if (odd && !whole && !own && (op.node_.valid() || segment.copies > 1))
    return op.end(Status::half_written);
  op.odd_ = odd;
  op.final_word_ = odd ? word + 1 : 0;
  op.stage_ = Stage::change;
}

Operation SegmentState::put_step(SegmentOperation& op, const KnownSegment& segment,
                                 PutStep step) noexcept {
  const SegmentOperation::Request& request = op.request_;
  const bool whole = request.offset == 0 && request.bytes == segment.bytes;
  const bool merged = segment.is_delta() && !whole;
  const void* const from = merged ? segment.merged.data() : request.memory;
  const std::size_t bytes = merged ? segment.bytes : request.bytes;
  const std::uint64_t place = segment.data_at(0, op.data_version_) + (merged ? 0 : request.offset);
  const std::uint64_t second = op.second_offset_;
  const std::uint64_t word = segment.offset + kVersionWord;
  switch (step) {
    case PutStep::mark:
      return fetch_add(segment.primary, pool.id(), word, 1, &op.first_word_);
    case PutStep::second_mark:
      return write(op.second_, pool.id(), second + kVersionWord, &op.low_word_, 8);
    case PutStep::second_data:
      return write(op.second_, pool.id(), second + place, from, bytes);
    case PutStep::second_unmark:
      return write(op.second_, pool.id(), second + kVersionWord, &op.high_word_, 8);
    case PutStep::data:
      return write(segment.primary, pool.id(), segment.offset + place, from, bytes);
    case PutStep::unmark:
      break;
  }
  return fetch_add(segment.primary, pool.id(), word, segment.is_delta() ? 2 : 1, &op.second_word_);
}

/// All steps are signals, so those to one member land in this order (F1). Returns whether it went
/// on.
bool SegmentState::change(SegmentOperation& op, KnownSegment& segment) noexcept {
  if (!segment.puts_lock()) return change_unversioned(op, segment);
  if (op.posted_ == 0) {
    if (segment.paused && !op.changing_ && !segment.unsettled) return false;
    op.second_ = segment.paused ? kNobody : segment.backup;
    op.second_offset_ = segment.backup_offset;
  }
  const bool captured = op.request_.bytes <= fabric.properties().max_inline_bytes &&
                        (!segment.is_delta() || segment.bytes == op.request_.bytes);
  std::array<Operation, kPutSteps> batch;
  std::array<std::uint8_t, kPutSteps> next{};  // after each of them
  std::size_t count = 0;
  for (std::uint8_t i = op.posted_; i < kPutSteps; ++i) {
    const auto step = static_cast<PutStep>(i);
    if (!is_needed(step, segment, op.odd_, op.second_)) continue;
    if (count > 0 && is_behind_all(step, captured, op.second_)) break;
    if (step == PutStep::second_mark) {
      if (op.final_word_ == 0) op.final_word_ = op.first_word_ + 2;
      op.high_word_ = op.final_word_;
      op.low_word_ = op.final_word_ - (segment.is_delta() ? 2 : 1);
    }
    batch[count] = put_step(op, segment, step).notify(op.completion_, Notify::remotely);
    next[count++] = static_cast<std::uint8_t>(i + 1);
  }
  if (count == 0) {
    changed(op, segment);
    return true;
  }
  std::size_t accepted = 0;
  post(op, std::span(batch).first(count), accepted);
  if (accepted == 0) return false;
  op.posted_ = next[accepted - 1];
  op.changing_ = !op.finished();
  return true;
}

bool SegmentState::change_unversioned(SegmentOperation& op, const KnownSegment& segment) noexcept {
  if (op.posted_ != 0) {
    op.end(Status::ok);
    return true;
  }
  std::size_t accepted = 0;
  const Operation data =
      put_step(op, segment, PutStep::data).notify(op.completion_, Notify::remotely);
  if (!post(op, std::span(&data, 1), accepted)) return false;
  op.posted_ = kUnversionedPosted;
  return true;
}

void SegmentState::changed(SegmentOperation& op, KnownSegment& segment) noexcept {
  op.changing_ = false;
  op.outcome_.version = segment.is_delta() ? op.data_version_ : (op.second_word_ + 1) / 2;
  if (op.node_.valid()) locks.set_recovered(op.node_, false);
  segment.lock_odd = segment.unsettled = false;
  segment.copy.clear();
  op.end(Status::ok);
}

}  // namespace dunlin
