#include "assert.hpp"
#include "segment/space.hpp"

/// Locks of segments, for this process or an attached one.
namespace dunlin {

using remote::Locks;
using remote::Protocol;
using remote::Status;
using remote::Until;

/// Takes the segment's lock for this call.
Protocol<Status> SegmentState::acquire(Transfer& one) {
  DUNLIN_ASSERT(!one.locked && !one.lock.valid(), "REM-8: a call takes its segment's lock once");
  KnownSegment& segment = *one.segment;
  const auto enters = [&] {  // unless too many do at once
    if (segment.copies > 1 && segment.lost) return true;
    if (segment.copies > 1 && !has_place(segment)) return false;
    one.lock = locks.acquire(segment.primary, segment.offset + kLockWord, one.request.try_only);
    return one.lock.valid();
  };
  if (!enters()) co_await Until(enters);
  if (!one.lock.valid()) co_return Status::lost;
  const auto answered = [&] {
    const Locks::Answer answer = locks.answer(one.lock);
    if (segment.copies < 2 || segment.lost) return answer != Locks::Answer::waiting;
    // The lock of a lost home may have another one soon.
    return has_place(segment) && answer != Locks::Answer::waiting && answer != Locks::Answer::lost;
  };
  if (!answered()) co_await Until(answered);
  if (segment.lost) co_return Status::lost;
  switch (locks.answer(one.lock)) {
    case Locks::Answer::busy:
      co_return Status::busy;
    case Locks::Answer::held:
      break;
    default:
      co_return Status::lost;
  }
  one.locked = true;
  one.placement = segment.placement;
  one.odd = one.outcome.recovered = locks.recovered(one.lock);
  co_return Status::ok;
}

Protocol<Outcome> SegmentState::lock(SegmentRequest request) {
  Transfer one(*this, request);
  Status status = enter(one);
  if (status == Status::unknown) {
    status = co_await resolve(request.key, request.owner);
    if (status == Status::ok) status = enter(one);
  }
  if (status != Status::ok) co_return one.ended(status);
  KnownSegment& segment = *one.segment;
  status = co_await acquire(one);
  std::uint64_t word = 0;
  if (status == Status::ok && one.odd && segment.puts_lock()) {
    do {
      if (segment.copies > 1) status = co_await place(one);
      if (status == Status::ok) status = judge(one, co_await read_word(one, word));
    } while (status == kMoved);
  }
  if (status != Status::ok) co_return one.ended(status);
  DUNLIN_ASSERT(one.locked && locks.answer(one.lock) == Locks::Answer::held,
                "REM-8: the process gets a lock that its call has");
  segment.lock = std::exchange(one.lock, {});
  segment.lock_owner = request.owner;
  segment.lock_odd = word % 2 != 0;
  co_return one.ended(Status::ok);
}

/// A holder that was told of its predecessor's death has repaired the data, unless it is still half
/// written.
AtOnce SegmentState::unlock_at_once(Key key, std::uint64_t owner, bool holder_died) noexcept {
  if (progress.was_stopped()) return {.status = progress.why_none_begins()};
  ++counters.others;
  KnownSegment* const segment = known(key);
  if (segment == nullptr || !segment->is_locked_by(owner)) return {.status = Status::not_held};
  DUNLIN_ASSERT(segment->turn == nullptr,
                "SEG-3: the calls under a lock have ended when it is given back");
  locks.set_recovered(segment->lock, segment->lock_odd || holder_died);
  locks.release(std::exchange(segment->lock, {}));
  segment->unsettled = false;  // its successor waits until it is settled
  return {.status = Status::ok};
}

}  // namespace dunlin
