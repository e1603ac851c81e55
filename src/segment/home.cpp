#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "fabric/hash.hpp"
#include "segment/space.hpp"

/// What a member does for the segments that it holds, and for the names that fall to it.
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
  const Key key{message.key};
  switch (message.type) {
    case Type::allocate:
      return channel.send(from, allocate(from, message));
    case Type::release:
      return release(from, message);
    case Type::look_up: {
      const Status status = look_up(key);
      if (status != Status::ok) return answer(from, message, status, key);
      HeldSegment& segment = held[key.slot()];
      if (std::find(segment.known_by.begin(), segment.known_by.end(), from) ==
          segment.known_by.end())
        segment.known_by.push_back(from);
      return channel.send(from, SegmentMessage{.type = Type::answer,
                                               .coherence = segment.coherence,
                                               .id = message.id,
                                               .key = message.key,
                                               .offset = segment.offset,
                                               .bytes = segment.bytes,
                                               .stale_ns = segment.stale_ns});
    }
    case Type::find: {
      const auto found = names.find(message.name_text());
      if (found == names.end()) return answer(from, message, Status::unknown);
      return answer(from, message, Status::ok, found->second);
    }
    case Type::bind:
      return bind(from, message);
    case Type::unbind: {
      const auto found = names.find(message.name_text());
      if (found != names.end() && found->second == key) names.erase(found);
      if (message.id != 0) answer(from, message, Status::ok, key);
      return;
    }
    case Type::answer:
    case Type::allocated:
      return take_answer(from, message);
    case Type::invalidate:
      if (KnownSegment* const segment = known(key)) segment->closing = true;
      closing.push_back(key);
      return;
    case Type::invalidated:
      return dropped(from, key);
  }
}

void SegmentState::answer(Rank to, const SegmentMessage& request, Status status, Key key) {
  channel.send(to, SegmentMessage{
                       .type = Type::answer, .status = status, .id = request.id, .key = key.value});
}

SegmentMessage SegmentState::allocate(Rank from, const SegmentMessage& request) {
  SegmentMessage reply{.type = Type::allocated, .status = Status::no_room, .id = request.id};
  if (request.bytes > options.pool_bytes) return reply;
  if (free_slots.empty() && held.size() == kMaxSegments) return reply;
  const auto offset = blocks.allocate(kDataOffset + request.bytes);
  if (!offset) return reply;
  if (free_slots.empty()) {
    free_slots.push_back(static_cast<std::uint32_t>(held.size()));
    held.emplace_back();
  }
  const std::uint32_t slot = free_slots.back();
  free_slots.pop_back();
  HeldSegment& segment = held[slot];
  segment = {.generation = segment.generation + 1,
             .taken = true,
             .coherence = request.coherence,
             .offset = *offset,
             .bytes = request.bytes,
             .stale_ns = request.stale_ns,
             .name = request.name_text(),
             .known_by = {from}};
  zero(pool.memory().subspan(*offset, kDataOffset + request.bytes));
  locks.manage(*offset + kLockWord);
  reply.status = Status::ok;
  reply.coherence = request.coherence;
  reply.key = Key::of(fabric.rank(), slot, segment.generation).value;
  reply.offset = *offset;
  reply.bytes = request.bytes;
  reply.stale_ns = request.stale_ns;
  return reply;
}

Status SegmentState::look_up(Key key) const noexcept {
  if (key.home() != fabric.rank() || key.slot() >= held.size() || key.generation() == 0)
    return Status::unknown;
  const HeldSegment& segment = held[key.slot()];
  if (key.generation() > segment.generation) return Status::unknown;
  const bool there = key.generation() == segment.generation && segment.taken && !segment.closing;
  return there ? Status::ok : Status::released;
}

/// Those who know the segment drop it first; who is gone has no way to our memory any more.
void SegmentState::release(Rank from, const SegmentMessage& request) {
  const Key key{request.key};
  const Status status = look_up(key);
  if (status != Status::ok) return answer(from, request, status, key);
  HeldSegment& segment = held[key.slot()];
  segment.closing = true;
  segment.releaser = from;
  segment.release_id = request.id;
  std::erase_if(segment.known_by, [&](Rank rank) { return !progress.members().contains(rank); });
  for (const Rank rank : segment.known_by)
    channel.send(rank, SegmentMessage{.type = Type::invalidate, .key = key.value});
  if (segment.known_by.empty()) close(key.slot());
}

void SegmentState::dropped(Rank by, Key key) {
  if (key.slot() >= held.size()) return;
  HeldSegment& segment = held[key.slot()];
  if (!segment.closing || segment.generation != key.generation()) return;
  std::erase(segment.known_by, by);
  if (segment.known_by.empty()) close(key.slot());
}

/// SEG-1: nobody reads or writes there any more, so its memory may be another's.
void SegmentState::close(std::uint32_t slot) {
  HeldSegment& segment = held[slot];
  const Key key = Key::of(fabric.rank(), slot, segment.generation);
  locks.forget(segment.offset + kLockWord);
  blocks.free(segment.offset);
  segment.taken = segment.closing = false;
  if (segment.generation != UINT32_MAX) free_slots.push_back(slot);
  SegmentMessage message{.type = Type::unbind, .key = key.value};
  message.set_name(segment.name);
  if (const Rank directory = directory_of(segment.name); !segment.name.empty() && !gone(directory))
    channel.send(directory, message);  // though the releaser may die before it does the same
  message.type = Type::answer;
  message.id = segment.release_id;
  channel.send(segment.releaser, message);
}

void SegmentState::bind(Rank from, const SegmentMessage& request) {
  const auto [entry, is_new] = names.try_emplace(request.name_text(), Key{request.key});
  answer(from, request, is_new ? Status::ok : Status::name_taken, Key{request.key});
}

void SegmentState::members_changed() {
  for (std::uint32_t slot = 0; slot < held.size(); ++slot) {
    HeldSegment& segment = held[slot];
    if (!segment.taken) continue;
    std::erase_if(segment.known_by, [&](Rank rank) { return !progress.members().contains(rank); });
    if (segment.closing && segment.known_by.empty()) close(slot);
  }
  std::erase_if(names,
                [&](const auto& name) { return !progress.members().contains(name.second.home()); });
}

// --- what this process knows of others' segments -------------------------------------------------

void SegmentState::take_answer(Rank from, const SegmentMessage& message) {
  if (message.status == Status::ok && message.bytes > 0) learn(message);
  const auto found = asked.find(message.id);
  if (found == asked.end()) {  // nobody wants it any more
    if (message.type == Type::allocated && message.status == Status::ok)
      channel.send(from, SegmentMessage{.type = Type::release, .key = message.key});
    return;
  }
  SegmentOperation& op = *found->second;
  asked.erase(found);
  op.id_ = 0;
  op.answer_ = message.status;
  op.outcome_.key = Key{message.key};
  if (op.request_.kind == SegmentOperation::Kind::release) op.name_ = message.name_text();
}

void SegmentState::learn(const SegmentMessage& message) {
  const Key key{message.key};
  if (key.home() >= known_at.size()) return;
  std::vector<KnownSegment>& slots = known_at[key.home()];
  if (key.slot() >= slots.size()) slots.resize(key.slot() + 1);
  KnownSegment& segment = slots[key.slot()];
  if (segment.generation == key.generation() || segment.released >= key.generation()) return;
  segment.generation = key.generation();
  segment.coherence = message.coherence;
  segment.offset = message.offset;
  segment.bytes = message.bytes;
  segment.stale_ns = message.stale_ns;
}

std::size_t SegmentState::drop_what_closes() {
  std::size_t done = 0;
  for (std::size_t i = closing.size(); i > 0; --i) {
    const Key key = closing[i - 1];
    KnownSegment* const segment = known(key);
    if (segment != nullptr) {
      const bool used = segment->users > 0 || segment->lock.valid() ||
                        !locks.idle(key.home(), segment->offset + kLockWord);
      if (used) continue;
      *segment = KnownSegment();
      segment->released = key.generation();
    }
    if (!gone(key.home()))
      channel.send(key.home(), SegmentMessage{.type = Type::invalidated, .key = key.value});
    closing.erase(closing.begin() + static_cast<std::ptrdiff_t>(i - 1));
    ++done;
  }
  return done;
}

Rank SegmentState::directory_of(const std::string& name) const noexcept {
  return static_cast<Rank>(fnv1a(name) % fabric.size());
}

Rank SegmentState::next_in_turn() noexcept {
  for (Rank tries = 0; tries < fabric.size(); ++tries) {
    turn = (turn + 1) % fabric.size();
    if (!gone(turn)) break;
  }
  return turn;
}

bool SegmentState::gone(Rank rank) const noexcept {
  return rank >= fabric.size() || fabric.failed(rank) || withdrawn[rank] ||
         !progress.members().contains(rank);
}

std::size_t SegmentState::poll_part() {
  std::size_t done = channel.poll();
  if (!closing.empty()) done += drop_what_closes();
  statistics.show(done, blocks, locks, progress.in_flight());
  return done;
}

}  // namespace dunlin
