#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fabric/hash.hpp"
#include "segment/space.hpp"

/// A member's work for the segments that it holds, and for the names that it keeps.
namespace dunlin {

using remote::Status;
using Type = SegmentMessage::Type;

namespace {

void zero(std::span<std::byte> memory) noexcept {
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (std::size_t done = 0; done < memory.size(); done += kZeros.size())
    memory::copy_unwatched(memory.data() + done, kZeros.data(),
                           std::min(kZeros.size(), memory.size() - done));
}

}  // namespace

void SegmentState::handle(Rank from, std::span<const std::byte> bytes) {
  SegmentMessage message{};
  if (!remote::parse(bytes, message)) return;
  DUNLIN_ASSERT(from < progress.capacity(), "SEG-4: members alone have segments, and ask");
  const Key key{message.key};
  switch (message.type) {
    case Type::allocate:
      return allocate(from, message);
    case Type::release:
      return release(from, message);
    case Type::look_up: {
      const Status status = look_up(key);
      HeldSegment* const segment = status == Status::ok ? holding(key) : nullptr;
      if (status == Status::busy)
        return channel.send(from, SegmentMessage{.type = Type::answer,
                                                 .status = status,
                                                 .id = message.id,
                                                 .key = key.value,
                                                 .primary = backups.at(key.value).primary});
      if (segment == nullptr) return answer(from, message, status, key);
      if (std::find(segment->known_by.begin(), segment->known_by.end(), from) ==
          segment->known_by.end())
        segment->known_by.push_back(from);
      SegmentMessage reply = describe(key, *segment);
      reply.type = Type::answer;
      reply.id = message.id;
      return channel.send(from, reply);
    }
    case Type::find: {
      const auto found = names.find(message.name_text());
      if (found == names.end()) return answer(from, message, Status::unknown);
      return answer(from, message, Status::ok, found->second.key);
    }
    case Type::bind:
      return bind(from, message);
    case Type::unbind: {
      const auto found = names.find(message.name_text());
      if (found != names.end() && found->second.key == key) names.erase(found);
      if (message.id != 0) answer(from, message, Status::ok, key);
      return;
    }
    case Type::answer:
    case Type::allocated:
    case Type::backup_made:
      return take_answer(from, message);
    case Type::invalidate:
      if (KnownSegment* const segment = known(key)) segment->closing = true;
      closing.emplace_back(from, key);
      return;
    case Type::invalidated:
      return dropped(from, key);
    default:
      return handle_copies(from, message);
  }
}

void SegmentState::answer(Rank to, const SegmentMessage& request, Status status, Key key) {
  channel.send(to, SegmentMessage{
                       .type = Type::answer, .status = status, .id = request.id, .key = key.value});
}

SegmentMessage SegmentState::describe(Key key, const HeldSegment& segment) const {
  DUNLIN_ASSERT(segment.taken && segment.generation == key.generation(),
                "SEG-1: a key is of one generation of its slot");
  SegmentMessage message{.type = Type::resume,
                         .coherence = segment.coherence,
                         .key = key.value,
                         .offset = segment.offset,
                         .bytes = segment.bytes,
                         .stale_ns = segment.stale_ns,
                         .versions = segment.versions,
                         .copies = segment.copies,
                         .backup = segment.backup,
                         .backup_offset = segment.backup_offset};
  if (const auto found = copying.find(key.value); found != copying.end()) {
    message.is_paused = found->second.pauses;
    message.backup = found->second.backup;
    message.backup_offset = found->second.backup_offset;
  }
  message.set_name(segment.name);
  return message;
}

void SegmentState::allocate(Rank from, const SegmentMessage& request) {
  SegmentMessage reply{.type = Type::allocated, .status = Status::no_room, .id = request.id};
  const bool sound = request.bytes > 0 && request.bytes <= options.pool_bytes &&
                     request.versions <= kMaxKeptVersions;
  const std::uint64_t bytes =
      sound ? block_bytes(request.coherence, request.bytes, request.versions) : 0;
  if (!sound || (free_slots.empty() && held.size() == kMaxSegments))
    return channel.send(from, reply);
  const auto offset = blocks.allocate(bytes);
  if (!offset) return channel.send(from, reply);
  if (free_slots.empty()) {
    free_slots.push_back(static_cast<std::uint32_t>(held.size()));
    held.emplace_back();
  }
  const std::uint32_t slot = free_slots.back();
  free_slots.pop_back();
  HeldSegment& segment = held[slot];
  DUNLIN_ASSERT_ALWAYS(!segment.taken && segment.generation != UINT32_MAX,
                       "SEG-1: a slot is one segment's, and no generation comes twice");
  segment = {.generation = segment.generation + 1,
             .taken = true,
             .coherence = request.coherence,
             .offset = *offset,
             .bytes = request.bytes,
             .stale_ns = request.stale_ns,
             .versions = request.versions,
             .copies = request.copies,
             .name = request.name_text(),
             .known_by = {from}};
  DUNLIN_ASSERT_ALWAYS(segment.block() == bytes && *offset + bytes <= pool.memory().size(),
                       "REM-6: a block has the bytes that its segment needs, and lies in the pool");
  zero(pool.memory().subspan(*offset, bytes));
  locks.manage(*offset + kLockWord);
  const Key key = Key::of(fabric.rank(), slot, segment.generation);
  if (segment.copies > 1) {
    const Allocating first{.asker = from, .id = request.id};
    if (!protocols.start(make_copy(key, first))) end_copy(key, {}, first);  // there is no memory
    return;
  }
  reply = describe(key, segment);
  reply.type = Type::allocated;
  reply.id = request.id;
  channel.send(from, reply);
}

HeldSegment* SegmentState::holding(Key key) noexcept {
  if (key.home() != fabric.rank()) {
    const auto found = adopted.find(key.value);
    return found == adopted.end() ? nullptr : &found->second;
  }
  if (key.slot() >= held.size()) return nullptr;
  HeldSegment& segment = held[key.slot()];
  return segment.taken && segment.generation == key.generation() ? &segment : nullptr;
}

/// `busy`: this process has the second copy, and may be about to take the segment over.
Status SegmentState::look_up(Key key) const noexcept {
  if (key.generation() == 0) return Status::unknown;
  if (key.home() != fabric.rank()) {
    if (released.contains(key.value)) return Status::released;
    if (backups.contains(key.value)) return Status::busy;
    const auto found = adopted.find(key.value);
    if (found == adopted.end()) return Status::unknown;
    return found->second.closing ? Status::released : Status::ok;
  }
  if (key.slot() >= held.size()) return Status::unknown;
  const HeldSegment& segment = held[key.slot()];
  if (key.generation() > segment.generation) return Status::unknown;
  const bool there = key.generation() == segment.generation && segment.taken && !segment.closing;
  return there ? Status::ok : Status::released;
}

/// The members that know the segment drop it first; members that are gone cannot reach our memory
/// any more.
void SegmentState::release(Rank from, const SegmentMessage& request) {
  const Key key{request.key};
  const Status status = look_up(key);
  if (status != Status::ok) return answer(from, request, status, key);
  HeldSegment& segment = *holding(key);
  DUNLIN_ASSERT_ALWAYS(!segment.closing, "SEG-2: a segment is released once");
  segment.closing = true;
  segment.releaser = from;
  segment.release_id = request.id;
  if (!copying.contains(key.value)) invalidate(key, segment);  // else: once that is over
}

/// With two copies every member may have been told of it.
void SegmentState::invalidate(Key key, HeldSegment& segment) {
  DUNLIN_ASSERT_ALWAYS(segment.closing && !copying.contains(key.value),
                       "SEG-1: members drop what is released, and no second copy is under way");
  if (segment.copies > 1) {
    segment.known_by.clear();
    for (Rank rank = 0; rank < progress.capacity(); ++rank)
      if (locks.takes_part(rank)) segment.known_by.push_back(rank);
  }
  for (const Rank rank : segment.known_by) {
    if (is_out(rank)) must_prune = true;
    channel.send(rank, SegmentMessage{.type = Type::invalidate, .key = key.value});
  }
  if (segment.known_by.empty()) close(key);
}

bool SegmentState::is_out(Rank rank) const noexcept {
  return !progress.contains(rank) || withdrawn[rank];
}

/// A member that is gone need not drop anything, once every member has expelled it; nor one that
/// has destroyed its space.
void SegmentState::prune() {
  if (locks.repairing()) return;
  must_prune = false;
  std::vector<Key> all;
  for (std::uint32_t slot = 0; slot < held.size(); ++slot)
    if (held[slot].taken) all.push_back(Key::of(fabric.rank(), slot, held[slot].generation));
  for (const auto& [key, segment] : adopted) all.push_back(Key{key});
  for (const Key key : all) {
    HeldSegment& segment = *holding(key);
    std::erase_if(segment.known_by, [&](Rank rank) { return is_out(rank); });
    if (segment.closing && segment.known_by.empty() && !copying.contains(key.value)) close(key);
  }
}

void SegmentState::dropped(Rank by, Key key) {
  HeldSegment* const segment = holding(key);
  if (segment == nullptr || !segment->closing || copying.contains(key.value)) return;
  std::erase(segment->known_by, by);
  if (segment->known_by.empty()) close(key);
}

/// SEG-1: no member reads or writes there any more, so its memory may be another's.
void SegmentState::close(Key key) {
  HeldSegment& segment = *holding(key);
  DUNLIN_ASSERT_ALWAYS(segment.closing && segment.known_by.empty() && !copying.contains(key.value),
                       "SEG-1: a block is free once no member knows its segment");
  locks.forget(segment.offset + kLockWord);
  blocks.free(segment.offset);
  segment.taken = segment.closing = false;
  SegmentMessage message{.type = Type::unbind, .key = key.value};
  message.set_name(segment.name);
  if (const Rank directory = directory_of(segment.name); !segment.name.empty() && !gone(directory))
    channel.send(directory, message);  // though the releaser may die before it does the same
  if (segment.backup != kNobody && !gone(segment.backup))
    channel.send(segment.backup, SegmentMessage{.type = Type::drop_backup, .key = key.value});
  message.type = Type::answer;
  message.id = segment.release_id;
  channel.send(segment.releaser, message);
  if (key.home() != fabric.rank()) {
    released.insert(key.value);
    adopted.erase(key.value);
  } else if (segment.generation != UINT32_MAX) {
    free_slots.push_back(key.slot());
  }
}

void SegmentState::bind(Rank from, const SegmentMessage& request) {
  const Name name{Key{request.key}, request.copies > 1};
  const auto [entry, is_new] = names.try_emplace(request.name_text(), name);
  answer(from, request, is_new ? Status::ok : Status::name_taken, name.key);
}

void SegmentState::members_changed() {
  must_prune = true;
  std::erase_if(names, [&](const auto& name) {
    return !name.second.survives && !progress.contains(name.second.key.home());
  });
  move_known_segments();
  copies_changed();
}

// --- what this process knows of others' segments -------------------------------------------------

void SegmentState::take_answer(Rank from, const SegmentMessage& message) {
  if (message.status == Status::ok && message.bytes > 0) learn(from, message);
  const auto found = asked.find(message.id);
  if (found != asked.end() && found->second->member == from) {
    found->second->message = message;
    if (message.status == Status::under_way || message.status == kMoved)  // no answer of ours
      found->second->message.status = Status::unknown;
    found->second->answered = true;
  } else if (message.status == Status::ok && message.type == Type::allocated) {  // unwanted by now
    channel.send(from, SegmentMessage{.type = Type::release, .key = message.key});
  } else if (message.status == Status::ok && message.type == Type::backup_made) {
    channel.send(from, SegmentMessage{.type = Type::drop_backup, .key = message.key});
  }
}

void SegmentState::learn(Rank primary, const SegmentMessage& message) {
  const Key key{message.key};
  if (key.home() >= known_at.size()) return;
  auto& slots = known_at[key.home()];
  if (key.slot() >= slots.size()) slots.resize(key.slot() + 1);
  if (slots[key.slot()] == nullptr) slots[key.slot()] = std::make_unique<KnownSegment>();
  KnownSegment& segment = *slots[key.slot()];
  if (segment.key == key || segment.released >= key.generation()) return;
  const bool is_known = segment.key.generation() != 0;  // it is dropped before the slot's next one
  if (is_known || !is_possible(message)) return;        // no member of ours has sent this
  segment.key = key;
  segment.coherence = message.coherence;
  segment.offset = message.offset;
  segment.bytes = message.bytes;
  segment.block_end =
      message.offset + block_bytes(message.coherence, message.bytes, message.versions);
  segment.stale_ns = message.stale_ns;
  segment.versions = message.versions;
  segment.copies = message.copies;
  segment.primary = primary;
  segment.backup = message.backup;
  segment.backup_offset = message.backup_offset;
  segment.paused = message.is_paused;
  segment.moved = primary != key.home();
}

bool SegmentState::is_possible(const SegmentMessage& message) const noexcept {
  const auto is_block = [](std::uint64_t offset) {
    return offset <= kMaxRegionBytes && offset % kCacheLineBytes == 0;
  };
  return message.bytes <= kMaxRegionBytes && message.versions <= kMaxKeptVersions &&
         is_block(message.offset) && is_block(message.backup_offset) &&
         (message.backup == kNobody || message.backup < progress.capacity());
}

std::size_t SegmentState::drop_what_closes() {
  std::size_t done = 0;
  for (std::size_t i = closing.size(); i > 0; --i) {
    const auto [asker, key] = closing[i - 1];
    KnownSegment* const segment = known(key);
    if (segment != nullptr) {
      const bool used = segment->users > 0 || segment->lock.valid() ||
                        !locks.idle(segment->primary, segment->offset + kLockWord);
      if (used) continue;
      DUNLIN_ASSERT(segment->turn == nullptr,
                    "SEG-1: a call that has the turn is one of the segment's users");
      *segment = KnownSegment();
      std::ranges::replace(lately_used, segment, nullptr);  // it has the key of nothing now
      segment->released = key.generation();
    }
    if (!gone(asker))
      channel.send(asker, SegmentMessage{.type = Type::invalidated, .key = key.value});
    closing.erase(closing.begin() + static_cast<std::ptrdiff_t>(i - 1));
    ++done;
  }
  return done;
}

Rank SegmentState::directory_of(const std::string& name) const noexcept {
  return static_cast<Rank>(fnv1a(name) % progress.size());
}

Rank SegmentState::next_in_turn() noexcept {
  for (Rank tries = 0; tries < progress.capacity(); ++tries) {
    turn = (turn + 1) % progress.capacity();
    if (is_here(turn) && !gone(turn)) break;
  }
  return turn;
}

bool SegmentState::has_come(Rank rank) const noexcept {
  return rank < progress.capacity() && (progress.contains(rank) || progress.is_gone(rank));
}

bool SegmentState::is_here(Rank rank) const noexcept {
  return locks.takes_part(rank) && !is_out(rank);
}

bool SegmentState::gone(Rank rank) const noexcept {
  return rank >= progress.capacity() || fabric.failed(rank) || withdrawn[rank] ||
         !progress.contains(rank);
}

std::size_t SegmentState::poll_part() {
  std::size_t done = channel.poll();
  if (!is_announced && locks.takes_part(fabric.rank())) announce();
  if (must_prune) prune();
  if (!closing.empty()) done += drop_what_closes();
  if (!pausing.empty()) done += answer_pauses();
  if (std::exchange(must_copy, false)) begin_copies();
  done += protocols.advance();
  counters.show(done, blocks, locks, progress.in_flight());
  return done;
}

}  // namespace dunlin
