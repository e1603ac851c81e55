#include <algorithm>
#include <array>
#include <string>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fabric/thread_guard.hpp"
#include "segment/space.hpp"

/// Calls on segments whose memory is mapped here (Fabric::reach), as on shm: plain functions that
/// do what the protocols of get.cpp, put.cpp and lock.cpp would. Whatever is unusual is theirs.
namespace dunlin {

using remote::Protocol;
using remote::Status;

namespace {

/// So many gets of get_many() ask for their lines before the first one is read.
constexpr std::size_t kAskedAhead = 32;

[[nodiscard]] std::uint64_t load(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}
void store(std::byte* at, std::uint64_t word) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(at), word);
}

}  // namespace

/// Finds the only copy of a segment, if it is mapped here.
bool SegmentState::map(KnownSegment& segment) noexcept {
  if (!coherent || segment.copies != 1) return false;
  const std::span<std::byte> there = fabric.reach(segment.primary, pool.id());
  if (segment.block_end > there.size()) return false;
  segment.block = there.data() + segment.offset;
  segment.mapped_in = fabric.disconnections();
  return true;
}

/// Under a lock of this process, or beside a call that has the turn there, calls have an order.
[[gnu::always_inline]] inline KnownSegment* SegmentState::mapped(Key key) noexcept {
  KnownSegment* const segment = known(key);
  if (segment == nullptr || !segment->is_plain() || progress.was_stopped()) return nullptr;
  if (segment->mapped_in != fabric.disconnections() && !map(*segment)) [[unlikely]]
    return nullptr;
  DUNLIN_ASSERT(
      segment->copies == 1 && !segment->lost &&
          fabric.reach(segment->primary, pool.id()).data() + segment->offset == segment->block,
      "SEG-1: the block is where it was found, as no region has been disconnected");
  return segment;
}

[[gnu::always_inline]] inline AtOnce SegmentState::get_mapped(KnownSegment& segment,
                                                              std::span<std::byte> to,
                                                              std::uint64_t offset,
                                                              std::uint64_t known) noexcept {
  if (!segment.fits(to, offset)) return {};
  if (segment.coherence == Coherence::version &&
      load(segment.block + kVersionWord) == known * 2)  // unchanged
    return {.version = known, .status = Status::ok};
  if (segment.coherence != Coherence::null || known != UINT64_MAX)
    return get_whole(segment, to, offset, known);
  memory::copy(to.data(), segment.block + kDataOffset + offset, to.size());
  return {.status = Status::ok};
}

/// Not inline, so that a get of words needs no registers for it.
[[gnu::noinline]] AtOnce SegmentState::get_whole(KnownSegment& segment, std::span<std::byte> to,
                                                 std::uint64_t offset,
                                                 std::uint64_t known_version) noexcept {
  DUNLIN_ASSERT(!segment.lock.valid() && segment.turn == nullptr,
                "SEG-3: a get under a lock of this process waits for its turn, in a protocol");
  const std::byte* data = segment.block + kDataOffset + offset;
  if (!segment.versioned()) {  // read and strict exclude puts
    if (known_version != UINT64_MAX) return {};
    const std::uint64_t entered = locks.enter(segment.block + kLockWord);
    if (entered == 0) return {};
    memory::copy(to.data(), data, to.size());
    locks.leave(segment.block + kLockWord, entered, segment.primary, segment.offset + kLockWord);
    return {.status = Status::ok};
  }
  if (segment.coherence == Coherence::write && known_version != UINT64_MAX) return {};
  if (segment.coherence == Coherence::temporal) {
    const AtOnce copied = take_copy(segment, to, offset, known_version, UINT64_MAX);
    if (copied.ended() || to.size() == segment.bytes) return copied;  // which may leave a copy
  }
  const std::uint64_t word = load(segment.block + kVersionWord);
  if (word % 2 != 0) return {};  // a put goes on, or was cut off
  const std::uint64_t version = word / 2;
  if (segment.is_delta()) {
    segment.seen_version = std::max(segment.seen_version, version);
    data = segment.block + segment.data_at(0, version) + offset;
  }
  DUNLIN_ASSERT(data + to.size() <= segment.block + (segment.block_end - segment.offset),
                "SEG-1: a get reads the segment's block alone");
  if (version != known_version) {
    memory::copy(to.data(), data, to.size());
    const std::uint64_t again = load(segment.block + kVersionWord);
    const bool whole =
        again == word || (segment.is_delta() && again / 2 - version < segment.versions);
    if (!whole) return {};
  }
  return {.version = version, .status = Status::ok};
}

[[gnu::always_inline]] inline AtOnce SegmentState::put_at_once(Key key,
                                                               std::span<const std::byte> from,
                                                               std::uint64_t offset) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  KnownSegment* const segment = mapped(key);
  if (segment == nullptr || !segment->fits(from, offset)) return {};
  if (segment->puts_lock()) return put_whole(*segment, from, offset);
  ++counters.puts;
  memory::copy(segment->block + kDataOffset + offset, from.data(), from.size());
  if (puts_wake) fabric.ring(segment->primary);
  return {.status = Status::ok};
}

[[gnu::always_inline]] inline AtOnce SegmentState::put_locked(KnownSegment& segment,
                                                              std::span<const std::byte> from,
                                                              std::uint64_t offset,
                                                              std::uint64_t expected) noexcept {
  DUNLIN_ASSERT(segment.copies == 1 && segment.turn == nullptr,
                "SEG-13: a put to two copies, or behind another call's turn, is a protocol");
  const bool is_delta = segment.is_delta();
  if (is_delta && from.size() != segment.bytes) return {};  // a range is put into a copy
  std::byte* const block = segment.block;
  const std::uint64_t entered = locks.enter(block + kLockWord);
  if (entered == 0) return {};
  const std::uint64_t word = load(block + kVersionWord);
  const bool is_expected = expected == UINT64_MAX || word / 2 == expected;
  if (word % 2 == 0 && is_expected) {
    std::byte* data = block + kDataOffset + offset;
    if (is_delta)  // into a slot that no member reads
      data = block + segment.data_at(0, word / 2 + 1);
    else
      store(block + kVersionWord, word + 1);
    DUNLIN_ASSERT(data + from.size() <= block + (segment.block_end - segment.offset),
                  "SEG-1: a put writes to the segment's block alone");
    memory::copy(data, from.data(), from.size());
    store(block + kVersionWord, word + 2);
    segment.own_version = word / 2 + 1;
    if (puts_wake) fabric.ring(segment.primary);
    ++counters.puts;
  }
  locks.leave(block + kLockWord, entered, segment.primary, segment.offset + kLockWord);
  if (word % 2 != 0) return {};
  if (!is_expected) {
    ++counters.puts;
    return {.version = word / 2, .status = Status::changed};
  }
  return {.version = word / 2 + 1, .status = Status::ok};
}

[[gnu::noinline]] AtOnce SegmentState::put_whole(KnownSegment& segment,
                                                 std::span<const std::byte> from,
                                                 std::uint64_t offset) noexcept {
  return put_locked(segment, from, offset, UINT64_MAX);
}

AtOnce SegmentState::put_if_at_once(const SegmentRequest& request) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  KnownSegment* const segment = mapped(request.key);
  if (segment == nullptr || fault_of(request, *segment) != Status::ok) return {};
  return put_locked(*segment, {request.memory, request.bytes}, request.offset,
                    request.wanted_version);
}

[[gnu::always_inline]] inline AtOnce SegmentState::lock_at_once(Key key,
                                                                std::uint64_t owner) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  KnownSegment* const segment = mapped(key);
  if (segment == nullptr) return {};
  const std::uint64_t entered = locks.enter(segment->block + kLockWord);
  if (entered == 0) return {};
  segment->lock = locks.keep(entered, segment->primary, segment->offset + kLockWord);
  DUNLIN_ASSERT(locks.answer(segment->lock) == remote::Locks::Answer::held,
                "REM-8: the lock is held when the call says so");
  segment->lock_owner = owner;
  segment->lock_odd = false;
  ++counters.locks;
  return {.status = Status::ok};
}

bool SegmentState::get_many_at_once(std::span<SegmentRead> reads) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  bool all = true;
  std::uint64_t ended = 0;
  std::array<KnownSegment*, kAskedAhead> segments;
  for (; !reads.empty(); reads = reads.subspan(std::min(reads.size(), kAskedAhead))) {
    const std::span<SegmentRead> some = reads.first(std::min(reads.size(), kAskedAhead));
    Key last;
    KnownSegment* segment = nullptr;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const SegmentRead& one = some[i];
      if (one.key != last) segment = mapped(last = one.key);
      segments[i] = segment;
      if (segment == nullptr) continue;
      if (segment->coherence != Coherence::null) __builtin_prefetch(segment->block);
      __builtin_prefetch(segment->block + kDataOffset + one.offset);
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      SegmentRead& one = some[i];
      AtOnce how;
      if (segments[i] != nullptr) how = get_mapped(*segments[i], one.to, one.offset, UINT64_MAX);
      one.status = how.status;
      one.version = how.version;
      ended += how.ended() ? 1 : 0;
      all = all && how.status == Status::ok;
    }
  }
  counters.gets += ended;
  return all;
}

// --- calls ---------------------------------------------------------------------------------------

[[gnu::always_inline]] inline AtOnce SegmentState::get_at_once(Key key, std::span<std::byte> to,
                                                               std::uint64_t offset,
                                                               std::uint64_t known) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  KnownSegment* const segment = mapped(key);
  if (segment == nullptr) return {};
  const AtOnce how = get_mapped(*segment, to, offset, known);
  if (how.ended()) ++counters.gets;
  return how;
}

AtOnce SegmentState::copy_at_once(const SegmentRequest& request) noexcept {
  DUNLIN_ONE_THREAD(&fabric);
  const KnownSegment* const segment = known(request.key);
  const bool is_plain = segment != nullptr && segment->is_plain() && !progress.was_stopped();
  if (!is_plain || fault_of(request, *segment) != Status::ok) return {};
  const AtOnce how = take_copy(*segment, {request.memory, request.bytes}, request.offset,
                               UINT64_MAX, request.max_age_ns);
  if (how.ended()) ++counters.gets;
  return how;
}

[[gnu::always_inline]] inline SegmentOperation SegmentState::ended(
    AtOnce how, SegmentCall call, Key key, std::uint64_t offset, std::size_t bytes,
    std::uint64_t known_version) const noexcept {
  return {progress,
          {.status = how.status,
           .unchanged = call == SegmentCall::get && how.version == known_version,
           .call = call,
           .version = how.version,
           .key = key,
           .space = this,
           .offset = offset,
           .bytes = bytes}};
}

SegmentOperation SegmentState::begin_get(Key key, std::span<std::byte> to, std::uint64_t offset) {
  if (const AtOnce how = get_at_once(key, to, offset, UINT64_MAX); how.ended())
    return ended(how, SegmentCall::get, key, offset, to.size());
  return start(get_of(key, to, offset), {}, remote::kForever);
}

SegmentOperation SegmentState::begin_get_if_changed(Key key, std::span<std::byte> to,
                                                    std::uint64_t known_version,
                                                    std::uint64_t offset) {
  if (const AtOnce how = get_at_once(key, to, offset, known_version); how.ended())
    return ended(how, SegmentCall::get, key, offset, to.size(), known_version);
  return start(get_of(key, to, offset, known_version), {}, remote::kForever);
}

SegmentOperation SegmentState::begin_put(Key key, std::span<const std::byte> from,
                                         std::uint64_t offset) {
  if (const AtOnce how = put_at_once(key, from, offset); how.ended())
    return ended(how, SegmentCall::put, key, offset, from.size());
  return start(put_of(key, from, offset), {}, remote::kForever);
}

SegmentOperation SegmentState::begin_lock(Key key, std::uint64_t timeout_ns) {
  if (const AtOnce how = lock_at_once(key, 0); how.ended())
    return ended(how, SegmentCall::lock, key);
  return start({.call = SegmentCall::lock, .key = key}, {}, timeout_ns);
}

SegmentOperation SegmentState::begin_unlock(Key key) {
  return ended(unlock_at_once(key, 0, false), SegmentCall::unlock, key);
}

/// A call with a request, as of an attached process.
AtOnce SegmentState::at_once(const SegmentRequest& request) noexcept {
  switch (request.call) {
    case SegmentCall::get:
      if (request.wanted_version != UINT64_MAX) return {};
      if (request.max_age_ns != UINT64_MAX) return copy_at_once(request);
      return get_at_once(request.key, {request.memory, request.bytes}, request.offset,
                         request.known_version);
    case SegmentCall::put:
      if (request.wanted_version != UINT64_MAX) return put_if_at_once(request);
      return put_at_once(request.key, {request.memory, request.bytes}, request.offset);
    case SegmentCall::lock:
      return lock_at_once(request.key, request.owner);
    case SegmentCall::unlock:
      return unlock_at_once(request.key, request.owner, request.holder_died);
    default:
      return {};
  }
}

SegmentOperation SegmentState::begin(const SegmentRequest& request, std::string_view name,
                                     std::uint64_t timeout_ns) {
  if (const AtOnce how = at_once(request); how.ended())
    return ended(how, request.call, request.key, request.offset, request.bytes,
                 request.known_version);
  return start(request, name, timeout_ns);
}

/// Not inline, so that a call that ends at once does not prepare for it.
[[gnu::noinline]] SegmentOperation SegmentState::start(const SegmentRequest& request,
                                                       std::string_view name,
                                                       std::uint64_t timeout_ns) {
  const auto run = [&](Protocol<Outcome> protocol) {
    return SegmentOperation(progress, std::move(protocol), timeout_ns, begun(request));
  };
  switch (request.call) {
    case SegmentCall::get:
      return run(get(request));
    case SegmentCall::put:
      return run(put(request));
    case SegmentCall::lock:
      return run(lock(request));
    case SegmentCall::allocate:
      return run(allocate(request, std::string(name)));
    case SegmentCall::release:
      return run(release(request));
    case SegmentCall::find:
      return run(find(request, std::string(name)));
    case SegmentCall::none:
    case SegmentCall::unlock:
      break;
  }
  return ended({.status = Status::not_allowed}, request.call, request.key);
}

}  // namespace dunlin
