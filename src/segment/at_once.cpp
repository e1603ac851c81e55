#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"
#include "segment/space.hpp"

/// Calls on segments whose memory is mapped here (Fabric::reach), as on shm: plain functions that
/// do what the protocols of get.cpp, put.cpp and lock.cpp would. Whatever is unusual is theirs.
namespace dunlin {

using remote::LockNode;
using remote::Status;

namespace {

[[nodiscard]] std::uint64_t load(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}
void store(std::byte* at, std::uint64_t word) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(at), word);
}

}  // namespace

bool SegmentState::at_once(const SegmentRequest& request, Outcome& outcome) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  if (!coherent || progress.was_stopped()) return false;
  KnownSegment* const known_segment = known(request.key);
  if (known_segment == nullptr) return false;
  KnownSegment& segment = *known_segment;
  // Under a lock of this process, or beside a call that has the turn there, calls have an order.
  const bool is_plain = segment.copies == 1 && !segment.lost && !segment.closing &&
                        !segment.lock.valid() && segment.turn == nullptr;
  if (!is_plain) return false;
  if (request.call == SegmentCall::lock) {
    segment.lock = locks.acquire_at_once(segment.primary, segment.offset + kLockWord);
    if (!segment.lock.valid()) return false;
    DUNLIN_ASSERT(locks.answer(segment.lock) == remote::Locks::Answer::held,
                  "REM-8: the lock is held when the call says so");
    segment.lock_owner = request.owner;
    segment.lock_odd = false;
    outcome.status = Status::ok;
    return true;
  }
  if (fault_of(request, segment) != Status::ok) return false;
  const std::span<std::byte> there = fabric.reach(segment.primary, pool.id());
  if (segment.block_end > there.size()) return false;
  std::byte* const block = there.data() + segment.offset;
  const Status status = request.call == SegmentCall::get
                            ? get_at_once(request, segment, block, outcome)
                            : put_at_once(request, segment, block, outcome);
  if (status == Status::under_way) return false;
  outcome.status = status;
  return true;
}

Status SegmentState::get_at_once(const SegmentRequest& request, KnownSegment& segment,
                                 const std::byte* block, Outcome& outcome) noexcept {
  DUNLIN_ASSERT(!segment.lock.valid() && segment.turn == nullptr,
                "SEG-3: a get under a lock of this process waits for its turn, in a protocol");
  // Under temporal coherence a get may take, or leave, a copy.
  if (segment.coherence == Coherence::temporal || request.wanted_version != UINT64_MAX)
    return Status::under_way;
  const std::byte* data = block + segment.data_at(0, 0) + request.offset;
  if (segment.coherence == Coherence::null) {
    memory::fetch(request.memory, data, request.bytes);
    return Status::ok;
  }
  if (!segment.versioned()) {  // read and strict exclude puts
    const LockNode lock = locks.acquire_at_once(segment.primary, segment.offset + kLockWord);
    if (!lock.valid()) return Status::under_way;
    memory::fetch(request.memory, data, request.bytes);
    locks.release(lock);
    return Status::ok;
  }
  const std::uint64_t word = load(block + kVersionWord);
  if (word % 2 != 0) return Status::under_way;  // a put goes on, or was cut off
  outcome.version = word / 2;
  outcome.unchanged = outcome.version == request.known_version;
  if (segment.is_delta()) segment.seen_version = std::max(segment.seen_version, outcome.version);
  if (outcome.unchanged) return Status::ok;
  data = block + segment.data_at(0, outcome.version) + request.offset;
  DUNLIN_ASSERT(data + request.bytes <= block + (segment.block_end - segment.offset),
                "SEG-1: a get reads the segment's block alone");
  memory::fetch(request.memory, data, request.bytes);
  const std::uint64_t again = load(block + kVersionWord);
  const bool whole =
      segment.is_delta() ? again / 2 - outcome.version < segment.versions : again == word;
  return whole ? Status::ok : Status::under_way;
}

Status SegmentState::put_at_once(const SegmentRequest& request, KnownSegment& segment,
                                 std::byte* block, Outcome& outcome) noexcept {
  DUNLIN_ASSERT(segment.copies == 1 && segment.turn == nullptr,
                "SEG-13: a put to two copies, or behind another call's turn, is a protocol");
  const std::uint64_t begin = segment.data_at(0, 0) + request.offset;
  if (!segment.puts_lock()) {
    memory::place(block + begin, request.memory, request.bytes);
    fabric.ring(segment.primary);
    return Status::ok;
  }
  const bool whole = request.offset == 0 && request.bytes == segment.bytes;
  if (segment.is_delta() && !whole) return Status::under_way;
  const LockNode lock = locks.acquire_at_once(segment.primary, segment.offset + kLockWord);
  if (!lock.valid()) return Status::under_way;
  const std::uint64_t word = load(block + kVersionWord);
  if (word % 2 == 0) {
    DUNLIN_ASSERT(segment.data_at(segment.offset, word / 2 + 1) + request.offset + request.bytes <=
                      segment.block_end,
                  "SEG-1: a put writes to the segment's block alone");
    if (segment.is_delta()) {  // into a slot that no member reads
      memory::place(block + segment.data_at(0, word / 2 + 1), request.memory, request.bytes);
    } else {
      store(block + kVersionWord, word + 1);
      memory::place(block + begin, request.memory, request.bytes);
    }
    store(block + kVersionWord, word + 2);
    outcome.version = word / 2 + 1;
    segment.copy.clear();
  }
  fabric.ring(segment.primary);
  locks.release(lock);
  return word % 2 == 0 ? Status::ok : Status::under_way;
}

}  // namespace dunlin
