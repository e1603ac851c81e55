#include <cstring>

#include "assert.hpp"
#include "segment/space.hpp"

/// Puts, to one copy or to two: docs/segment.md has the protocols.
namespace dunlin {

using remote::Protocol;
using remote::Status;
using remote::Until;

Protocol<Outcome> SegmentState::put(SegmentRequest request) {
  Transfer one(*this, request);
  Status status = enter(one);
  if (status == Status::unknown) {
    status = co_await resolve(request.key, request.owner);
    if (status == Status::ok) status = enter(one);
  }
  if (status != Status::ok) co_return one.ended(status);
  KnownSegment& segment = *one.segment;

  if (!segment.puts_lock()) {
    status = co_await remote::post(
        fabric,
        write(segment.primary, pool.id(), segment.data_at(segment.offset, 0) + request.offset,
              request.memory, request.bytes),
        gate_of(segment));
    co_return one.ended(status);
  }
  if (!one.locked) {
    status = co_await acquire(one);
    if (status != Status::ok) co_return one.ended(status);
  }
  if (segment.turn != nullptr) co_await Until([&] { return segment.turn == nullptr; });
  segment.turn = &one;
  if (!one.lock.valid()) one.odd = one.odd || segment.lock_odd;  // of the one before
  do {
    if (segment.copies > 1) status = co_await place(one);
    if (status == Status::ok) status = co_await change(one);
  } while (status == kMoved);
  if (status != Status::ok) co_return one.ended(status);

  DUNLIN_ASSERT(one.locked && segment.turn == &one,
                "SEG-3: a put keeps its turn until it is complete");
  one.changing = false;
  if (one.lock.valid()) locks.set_recovered(one.lock, false);
  segment.lock_odd = segment.unsettled = false;
  segment.own_version = one.outcome.version;
  co_return one.ended(Status::ok);
}

namespace {

/// Why a put that names a version cannot be, if the version's word is this before it.
Status fault_of(const SegmentRequest& request, std::uint64_t word) noexcept {
  if (request.wanted_version == UINT64_MAX) return Status::ok;
  if (word % 2 != 0) return Status::half_written;
  return word / 2 == request.wanted_version ? Status::ok : Status::changed;
}

}  // namespace

Protocol<Status> SegmentState::change(Transfer& one) {
  KnownSegment& segment = *one.segment;
  DUNLIN_ASSERT(one.locked && segment.turn == &one, "SEG-3: a put changes under the lock");
  const SegmentRequest& request = one.request;
  const bool whole = request.offset == 0 && request.bytes == segment.bytes;
  const bool delta = segment.is_delta();
  Status status = Status::ok;

  // An odd word says that a put was cut off, this one or another.
  std::uint64_t word = 0, data_version = 0;
  if (one.odd || delta || request.wanted_version != UINT64_MAX) {
    status = judge(one, co_await read_word_in_order(one, word));
    if (status != Status::ok) co_return status;
    one.outcome.version = word / 2;
    if (one.final_word != 0 && word == one.final_word) co_return Status::ok;  // before it moved
    const bool own = one.final_word != 0 && word + 1 == one.final_word;
    one.odd = !delta && word % 2 != 0;
    if (one.final_word == 0) status = fault_of(request, word);
    if (status != Status::ok) co_return status;
    if (one.odd && !whole && !own && (one.lock.valid() || segment.copies > 1))
      co_return Status::half_written;
    if (delta) {
      data_version = word / 2 + 1;
      one.final_word = word + 2;
    } else {
      one.final_word = one.odd ? word + 1 : 0;
    }
  }
  const bool merges = delta && !whole;
  if (merges) {  // a range is put into a copy of the version before
    segment.merged.resize(segment.bytes);
    status = judge(one, co_await read(one, segment.data_at(segment.offset, data_version - 1),
                                      segment.merged.data(), segment.bytes));
    if (status != Status::ok) co_return status;
    std::memcpy(segment.merged.data() + request.offset, request.memory, request.bytes);
  }

  const auto may_begin = [&] {
    return !segment.paused || one.changing || segment.unsettled || segment.lost ||
           one.placement != segment.placement;
  };
  if (!may_begin()) {
    co_await Until(may_begin);
    status = judge(one, Status::ok);
    if (status != Status::ok) co_return status;
  }
  one.second = segment.paused ? kNobody : segment.backup;
  one.second_offset = segment.backup_offset;
  const Rank first = segment.primary;
  const std::uint64_t word_at = segment.offset + kVersionWord;
  const void* const from = merges ? segment.merged.data() : request.memory;
  const std::size_t bytes = merges ? segment.bytes : request.bytes;
  const std::uint64_t data_at = segment.data_at(0, data_version) + (merges ? 0 : request.offset);
  // Data that the fabric sends later than it takes must be placed before the word says so:
  // abandoned in between, it would leave torn data behind.
  const bool captured = request.bytes <= fabric.properties().max_inline_bytes &&
                        (!delta || segment.bytes == request.bytes);
  // All are signals, so those to one member land in this order (F1).
  remote::Batch<6, Gate> batch(fabric, Gate{this, &one, first, segment.copies > 1});

  // Under delta the bytes go into a slot that no member reads, so no word is made odd. A word that
  // is odd already stays so.
  const bool marks = !delta && !one.odd;
  const auto after = [&](Status posted) noexcept {
    if (marks && posted == Status::ok) one.final_word = word + 2;
    return judge(one, posted);
  };
  if (marks) batch.add(fetch_add(first, pool.id(), word_at, 1, &word));
  // The second copy is complete before the first one; what is written there needs the word.
  std::uint64_t low = 0, high = 0;  // the second copy's word before the put is complete, and after
  if (one.second != kNobody) {
    if (!batch.empty()) {
      status = after(co_await batch);
      if (status != Status::ok) co_return status;
    }
    DUNLIN_ASSERT(delta || one.odd || one.changing,
                  "SEG-13: the primary's word is odd before the second copy is written");
    high = one.final_word;
    low = high - (delta ? 2 : 1);
    batch.add(write(one.second, pool.id(), one.second_offset + kVersionWord, &low, 8));
    batch.add(write(one.second, pool.id(), one.second_offset + data_at, from, bytes));
    if (!captured) {
      status = after(co_await batch);
      if (status != Status::ok) co_return status;
    }
    batch.add(write(one.second, pool.id(), one.second_offset + kVersionWord, &high, 8));
    status = after(co_await batch);
    if (status != Status::ok) co_return status;
  }
  batch.add(write(first, pool.id(), segment.offset + data_at, from, bytes));
  if (!captured) {
    status = after(co_await batch);
    if (status != Status::ok) co_return status;
  }
  std::uint64_t last = 0;
  batch.add(fetch_add(first, pool.id(), word_at, delta ? 2 : 1, &last));
  status = after(co_await batch);
  one.outcome.version = delta ? data_version : (last + 1) / 2;
  co_return status;
}

}  // namespace dunlin
