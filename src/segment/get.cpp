#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "segment/space.hpp"

/// Gets, and what they have in common with puts: docs/segment.md has the protocols.
namespace dunlin {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

/// The version that a get wants, if that is the newest; above it: there is none.
std::uint64_t numbered(std::uint64_t wanted, std::uint64_t newest) noexcept {
  if (wanted == UINT64_MAX) return newest;
  const std::uint64_t before = kLatestVersion - wanted;
  return before < kMaxKeptVersions ? newest - before : wanted;
}

/// So often a get without a lock may meet a put; then it takes the lock, to be sure to end.
constexpr std::uint8_t kTornGets = 8;

}  // namespace

// --- a get or put under way ----------------------------------------------------------------------

Transfer::Transfer(SegmentState& its_space, const SegmentRequest& its_request) noexcept
    : space(its_space), request(its_request), outcome(its_space.begun(its_request)) {}

/// A change that was given up may be under way still: whoever has the lock next waits for it, and
/// looks at the word.
Transfer::~Transfer() {
  ++space.counter_of(request.call);
  remote::Locks& locks = space.locks;
  DUNLIN_ASSERT(!changing || locked, "SEG-3: a put posts its changes under the lock");
  DUNLIN_ASSERT(segment != nullptr || !lock.valid(),
                "SEG-1: a call uses the segment whose lock it takes");
  if (changing && !lock.valid()) segment->lock_odd = segment->unsettled = true;
  const remote::LockNode under = lock.valid() || segment == nullptr ? lock : segment->lock;
  if (changing && lock.valid()) locks.set_recovered(lock, true);
  if (changing && second != kNobody && under.valid())
    locks.settle_also(under, second, second_offset + kVersionWord);
  if (lock.valid()) locks.release(lock);
  if (segment == nullptr) return;
  DUNLIN_ASSERT(segment->users > 0, "SEG-1: no segment is dropped while it is used");
  --segment->users;
  if (segment->turn == this) segment->turn = nullptr;
}

void Transfer::use(KnownSegment& its_segment) noexcept {
  DUNLIN_ASSERT(segment == nullptr, "SEG-1: a call counts once as a user");
  DUNLIN_ASSERT(its_segment.key == request.key, "SEG-1: a key is of one generation of its slot");
  segment = &its_segment;
  placement = segment->placement;
  ++segment->users;
  locked = segment->is_locked_by(request.owner);
  odd = locked && segment->lock_odd;
}

Status SegmentState::enter(Transfer& one) noexcept {
  const SegmentRequest& request = one.request;
  Status status = look(request.key, request.owner);
  if (status != Status::ok) return status;
  DUNLIN_ASSERT(known(request.key) != nullptr, "SEG-1: a key that is found is known");
  KnownSegment& segment = *known(request.key);
  if (request.call == SegmentCall::lock)
    status = segment.is_locked_by(request.owner) ? Status::already_held : Status::ok;
  else
    status = fault_of(request, segment);
  if (status == Status::ok) one.use(segment);
  return status;
}

Outcome Transfer::ended(Status status) noexcept {
  DUNLIN_ASSERT(status != Status::under_way && status != kMoved,
                "REM-1: a call ends with `ok` or a named error, and begins anew if it has moved");
  outcome.status = status;
  return outcome;
}

Outcome Transfer::ended(AtOnce how) noexcept {
  outcome.version = how.version;
  outcome.unchanged = how.version == request.known_version;
  return ended(how.status);
}

Status SegmentState::Gate::now() const noexcept {
  DUNLIN_ASSERT(one == nullptr || (one->locked && one->segment->turn == one),
                "SEG-3: a put changes the segment in its turn under the lock");
  if (one == nullptr || one->changing || !copies) return Status::ok;
  const KnownSegment& segment = *one->segment;
  const bool waits = segment.paused && !segment.unsettled;
  return waits || (segment.paused ? kNobody : segment.backup) != one->second ? kMoved : Status::ok;
}

Status SegmentState::Gate::refused() const noexcept {
  return !copies && space->gone(member) ? Status::lost : Status::ok;
}

bool SegmentState::has_place(KnownSegment& segment) const noexcept {
  if (!locks.repairing()) segment.moved = false;
  return !segment.moved && !segment.unsure;
}

/// With a second copy, an operation whose member fails waits until the members have agreed, and
/// until all have parted from it; then it begins anew at the new primary, but keeps its lock.
Protocol<Status> SegmentState::place(Transfer& one) {
  KnownSegment& segment = *one.segment;
  DUNLIN_ASSERT(segment.copies > 1, "SEG-4: a segment with one copy never moves");
  co_await Until([&] {
    return segment.lost ||
           (has_place(segment) && (!one.failed || one.placement != segment.placement));
  });
  if (one.placement != segment.placement) one.odd = one.locked;  // it must look at the word there
  one.placement = segment.placement;
  one.failed = false;
  co_return segment.lost ? Status::lost : Status::ok;
}

Status SegmentState::judge(Transfer& one, Status status) const noexcept {
  if (one.segment->copies < 2) return status;
  if (one.segment->lost) return Status::lost;
  if (status == Status::lost) one.failed = true;
  const bool stays = one.placement == one.segment->placement && !one.segment->moved &&
                     !one.segment->unsure && status != Status::lost;
  return stays ? status : kMoved;
}

// --- gets ----------------------------------------------------------------------------------------

Protocol<Outcome> SegmentState::get(SegmentRequest request) {
  Transfer one(*this, request);
  Status status = enter(one);
  if (status == Status::unknown) {
    status = co_await resolve(request.key, request.owner);
    if (status == Status::ok) status = enter(one);
  }
  if (status != Status::ok) co_return one.ended(status);
  KnownSegment& segment = *one.segment;
  if (!one.locked) {  // what is read under the lock is to be changed
    const AtOnce copied = take_copy(segment, {request.memory, request.bytes}, request.offset,
                                    request.known_version, request.max_age_ns);
    if (copied.ended()) co_return one.ended(copied);
  }

  const bool excludes =
      segment.coherence == Coherence::read || segment.coherence == Coherence::strict;
  const bool is_delta = segment.is_delta();
  const bool keeps = request.bytes == segment.bytes &&
                     (segment.coherence == Coherence::temporal || request.max_age_ns != UINT64_MAX);
  std::uint8_t torn = 0;
  std::uint64_t first = 0;  // the version's word before the data is read
  bool has_first = false;
  for (;;) {
    if ((excludes || torn >= kTornGets) && !one.locked) {
      status = co_await acquire(one);
      if (status != Status::ok) co_return one.ended(status);
    }
    if (one.locked && segment.puts_lock() && segment.turn != &one) {
      co_await Until([&] { return segment.turn == nullptr; });
      segment.turn = &one;
      if (!one.lock.valid()) one.odd = one.odd || segment.lock_odd;
    }
    if (segment.copies > 1) {
      status = co_await place(one);
      if (status != Status::ok) co_return one.ended(status);
    }

    DUNLIN_ASSERT(!excludes || one.locked, "SEG-8: a get that excludes puts has the lock");
    DUNLIN_ASSERT(!one.locked || !segment.puts_lock() || segment.turn == &one,
                  "SEG-3: the calls under a lock take turns");
    // An abandoned put under this lock may have ended all the same: only the word knows.
    std::uint64_t version = 0;
    if (segment.versioned() || (one.odd && segment.puts_lock())) {
      if (!std::exchange(has_first, false)) {
        status = judge(one, co_await read_word(one, first));
        if (status == kMoved) continue;
        if (status != Status::ok) co_return one.ended(status);
      }
      if (first % 2 != 0) {  // no put is under way under the lock, so one was cut off
        if (one.locked) co_return one.ended(Status::half_written);
        ++torn;
        continue;
      }
      const std::uint64_t newest = first / 2;
      segment.seen_version = std::max(segment.seen_version, newest);
      if (segment.versioned()) one.outcome.version = newest;
      one.outcome.unchanged = newest == request.known_version;
      if (one.outcome.unchanged) co_return one.ended(Status::ok);
      version = numbered(request.wanted_version, newest);
      if (version > newest || (is_delta && newest - version >= segment.versions))
        co_return one.ended(Status::not_kept);
      if (segment.versioned()) one.outcome.version = version;
    }

    DUNLIN_ASSERT(segment.key == request.key && fault_of(request, segment) == Status::ok,
                  "SEG-1: a segment that is used stays the one it was");
    const std::uint64_t posted_at_ns = keeps ? fabric.now_ns() : 0;
    status =
        judge(one, co_await read(one, segment.data_at(segment.offset, version) + request.offset,
                                 request.memory, request.bytes));
    if (status == kMoved) continue;
    if (status != Status::ok) co_return one.ended(status);

    std::uint64_t again = first;
    if (segment.versioned() && !one.locked) {
      status = judge(one, co_await read_word(one, again));
      if (status == kMoved) continue;
      if (status != Status::ok) co_return one.ended(status);
      if (is_delta) {  // whole if the bytes' place cannot have been written again
        segment.seen_version = std::max(segment.seen_version, again / 2);
        if (again / 2 - version >= segment.versions) {
          first = again;
          has_first = true;
          continue;
        }
      } else if (again != first) {
        ++torn;
        continue;
      }
    }
    if (keeps && again == first) {  // it was the latest version when its read was posted
      segment.copy.assign(request.memory, request.memory + request.bytes);
      segment.copy_version = version;
      segment.copied_at_ns = posted_at_ns;
    }
    co_return one.ended(Status::ok);
  }
}

// --- the copy ------------------------------------------------------------------------------------

AtOnce SegmentState::take_copy(const KnownSegment& segment, std::span<std::byte> to,
                               std::uint64_t offset, std::uint64_t known_version,
                               std::uint64_t max_age_ns) const noexcept {
  const bool has_own_bound = max_age_ns != UINT64_MAX;
  if (segment.copy.empty() || (!has_own_bound && segment.coherence != Coherence::temporal))
    return {};
  if (segment.copy_version < segment.own_version) return {};
  DUNLIN_ASSERT(segment.copy.size() == segment.bytes && segment.copied_at_ns <= fabric.now_ns(),
                "SEG-10: a get of the whole has made the copy");
  const std::uint64_t bound_ns = has_own_bound ? max_age_ns : segment.stale_ns;
  if (fabric.now_ns() - segment.copied_at_ns > bound_ns || is_lost(segment)) return {};
  if (segment.copy_version != known_version)
    std::memcpy(to.data(), segment.copy.data() + offset, to.size());
  return {.version = segment.copy_version, .status = Status::ok};
}

}  // namespace dunlin
