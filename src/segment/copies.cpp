#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "remote/lock_word.hpp"
#include "segment/space.hpp"

/// Second copies. The primary has one made, at first and whenever it has none: it asks another
/// member for a block, lets puts rest everywhere, writes all that it has there, and says so. When
/// the primary is gone, the member with the complete copy is the primary, and has another made.
namespace dunlin {

using remote::Protocol;
using remote::Status;
using remote::Until;
using Type = SegmentMessage::Type;

// --- the primary ---------------------------------------------------------------------------------

/// Without a member that has room there is one copy only, until the members change.
Protocol<Status> SegmentState::make_copy(Key key, Allocating first) {
  DUNLIN_ASSERT(holding(key) != nullptr && !copying.contains(key.value),
                "SEG-13: the primary has one second copy made at a time");
  Copying& one = copying[key.value];
  Status status = Status::no_room;
  const std::uint32_t ranks = progress.capacity();
  for (std::uint32_t tried = 1; tried < ranks && status != Status::ok; ++tried) {
    const Rank next = (fabric.rank() + tried) % ranks;
    if (!is_here(next) || gone(next)) continue;
    status = co_await copy_to(next, key, one);
    if (progress.contains(next)) continue;
    status = Status::lost;  // also if it was complete: from the beginning, without it
    tried = 0;
  }
  DUNLIN_ASSERT(status != Status::ok || (one.completed && progress.contains(one.backup)),
                "SEG-13: a second copy counts when it is complete, at a member");
  if (status != Status::ok) one.backup = kNobody;
  const Copying made = one;
  copying.erase(key.value);
  end_copy(key, made, first);
  co_return Status::ok;
}

/// Asks the member for a block, lets puts rest everywhere, writes all that is here, and says so.
Protocol<Status> SegmentState::copy_to(Rank backup, Key key, Copying& one) {
  DUNLIN_ASSERT(backup != fabric.rank(), "SEG-13: two copies are at two members");
  one = {};
  one.backup = backup;
  SegmentMessage message = describe(key, *holding(key));
  message.type = Type::make_backup;
  Status status = co_await ask(backup, message);
  if (status == Status::ok) status = message.status;
  if (status != Status::ok) co_return status;

  one.backup_offset = message.backup_offset;
  one.pauses = true;
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (is_here(rank)) one.waiting_for.push_back(rank);
  DUNLIN_ASSERT(holding(key) != nullptr, "SEG-13: no segment is closed while it is copied");
  SegmentMessage pause = describe(key, *holding(key));
  pause.type = Type::pause;
  tell_all(pause);
  const auto is_out = [&] { return !is_here(backup); };
  co_await Until([&] {
    std::erase_if(one.waiting_for, [&](Rank rank) { return !is_here(rank); });
    return one.waiting_for.empty() || is_out();
  });
  if (is_out()) co_return Status::lost;

  DUNLIN_ASSERT(holding(key) != nullptr, "SEG-13: no segment is closed while it is copied");
  DUNLIN_ASSERT(one.pauses && one.waiting_for.empty(),
                "SEG-13: no put is under way while it is copied");
  const HeldSegment& segment = *holding(key);  // all but the lock's word
  const std::uint64_t bytes = segment.block() - kVersionWord;
  const Operation all = write(backup, pool.id(), one.backup_offset + kVersionWord,
                              pool.memory().data() + segment.offset + kVersionWord, bytes);
  status = co_await remote::post(fabric, all, Gate{this, nullptr, backup, true});
  if (status == Status::ok) {
    channel.send(backup, SegmentMessage{.type = Type::backup_complete, .key = key.value});
    co_await Until([&] { return one.completed || is_out(); });
  } else {
    co_await Until(is_out);  // the members will agree that it is gone
  }
  co_return one.completed ? Status::ok : Status::lost;
}

void SegmentState::end_copy(Key key, const Copying& one, Allocating first) {
  DUNLIN_ASSERT_ALWAYS(holding(key) != nullptr && !copying.contains(key.value),
                       "SEG-13: a copy that ended is under way no more, and its segment is there");
  HeldSegment& segment = *holding(key);
  segment.backup = one.backup;
  segment.backup_offset = one.backup_offset;
  const bool allocating = first.asker != kNobody;
  if (allocating && segment.backup == kNobody) {
    locks.forget(segment.offset + kLockWord);
    blocks.free(segment.offset);
    segment.taken = false;
    if (segment.generation != UINT32_MAX) free_slots.push_back(key.slot());
    return channel.send(
        first.asker,
        SegmentMessage{.type = Type::allocated, .status = Status::no_room, .id = first.id});
  }
  const SegmentMessage description = describe(key, segment);
  if (allocating) {
    SegmentMessage reply = description;
    reply.type = Type::allocated;
    reply.id = first.id;
    channel.send(first.asker, reply);
  }
  tell_all(description);
  if (segment.closing) invalidate(key, segment);
}

void SegmentState::tell_all(const SegmentMessage& message) {
  for (Rank rank = 0; rank < progress.capacity(); ++rank)
    if (is_here(rank)) channel.send(rank, message);
}

// --- the backup ----------------------------------------------------------------------------------

void SegmentState::make_backup(Rank from, const SegmentMessage& message) {
  drop_backup(Key{message.key});
  SegmentMessage reply{
      .type = Type::backup_made, .status = Status::no_room, .id = message.id, .key = message.key};
  const Rank home = Key{message.key}.home();
  const bool sound = message.bytes > 0 && message.bytes <= options.pool_bytes &&
                     message.versions <= kMaxKeptVersions && home != fabric.rank() &&
                     home < progress.capacity() && !adopted.contains(message.key);
  if (!sound) return channel.send(from, reply);
  const auto offset =
      blocks.allocate(block_bytes(message.coherence, message.bytes, message.versions));
  if (offset) {
    // Should this be the primary one day, its first holder is told that the last may have died.
    memory::store(*reinterpret_cast<std::uint64_t*>(pool.memory().data() + *offset + kLockWord),
                  remote::kFreeAfterDeath);
    backups[message.key] = {.description = message, .primary = from, .offset = *offset};
    reply.status = Status::ok;
    reply.backup_offset = *offset;
  }
  channel.send(from, reply);
}

void SegmentState::drop_backup(Key key) {
  const auto found = backups.find(key.value);
  if (found == backups.end()) return;
  blocks.free(found->second.offset);
  backups.erase(found);
}

void SegmentState::adopt(Key key, const BackupCopy& copy) {
  DUNLIN_ASSERT_ALWAYS(
      copy.complete && !progress.contains(copy.primary),
      "SEG-13: a complete copy is the primary once the members agree that the former one is gone");
  const SegmentMessage& description = copy.description;
  adopted[key.value] = {.generation = key.generation(),
                        .taken = true,
                        .coherence = description.coherence,
                        .offset = copy.offset,
                        .bytes = description.bytes,
                        .stale_ns = description.stale_ns,
                        .versions = description.versions,
                        .copies = description.copies,
                        .name = description.name_text()};
  locks.manage(copy.offset + kLockWord);
}

// --- every member --------------------------------------------------------------------------------

void SegmentState::handle_copies(Rank from, const SegmentMessage& message) {
  const Key key{message.key};
  const auto found = copying.find(message.key);
  Copying* const own =
      found == copying.end() || found->second.backup != from ? nullptr : &found->second;
  switch (message.type) {
    case Type::make_backup:
      return make_backup(from, message);
    case Type::paused:
      if (found != copying.end() && found->second.backup == message.backup)
        std::erase(found->second.waiting_for, from);
      return;
    case Type::backup_complete:
      if (const auto copy = backups.find(message.key);
          copy != backups.end() && copy->second.primary == from) {
        copy->second.complete = true;
        channel.send(from, SegmentMessage{.type = Type::backup_completed, .key = message.key});
      }
      return;
    case Type::backup_completed:
      if (own != nullptr) own->completed = true;
      return;
    case Type::drop_backup:
      if (const auto copy = backups.find(message.key);
          copy != backups.end() && copy->second.primary == from)
        drop_backup(key);
      return;
    default:
      return take_placement(from, message);
  }
}

/// A new primary may speak before this process has learnt that the old one is gone. Lost is final
/// (SEG-4): a member that never heard of the pause has lost the segment before `no_copy` arrives.
void SegmentState::take_placement(Rank from, const SegmentMessage& message) {
  KnownSegment* const segment = known(Key{message.key});
  if (!is_possible(message) || (segment != nullptr && segment->copies < 2))
    return;  // no member of ours says so
  if (segment != nullptr && segment->primary != from && !segment->lost &&
      progress.contains(segment->primary)) {
    early.emplace_back(from, message);
    return;
  }
  if (segment != nullptr && message.type == Type::no_copy) {
    segment->lost = segment->lost || segment->unsure;
    if (segment->lost) locks.unpark(segment->primary, segment->offset + kLockWord, false);
  } else if (segment != nullptr && !segment->lost) {
    if (segment->unsure) locks.unpark(segment->primary, segment->offset + kLockWord, true);
    const bool lost_backup = segment->backup != kNobody && segment->backup != message.backup;
    if (segment->primary != from || lost_backup) ++segment->placement;
    segment->primary = from;
    segment->offset = message.offset;
    segment->backup = message.backup;
    segment->backup_offset = message.backup_offset;
    segment->unsure = false;
    segment->paused = message.type == Type::pause;
  }
  if (message.type == Type::pause) pausing.emplace_back(from, message);
}

std::size_t SegmentState::answer_pauses() {
  return std::erase_if(pausing, [&](const auto& one) {
    const KnownSegment* const segment = known(Key{one.second.key});
    const bool puts =
        segment != nullptr &&
        ((segment->turn != nullptr && segment->turn->changing) || segment->unsettled ||
         locks.settling(segment->primary, segment->offset + kLockWord));
    if (puts) return false;
    channel.send(
        one.first,
        SegmentMessage{.type = Type::paused, .key = one.second.key, .backup = one.second.backup});
    return true;
  });
}

/// The locks are repaired after this, and the queues of these with them.
void SegmentState::move_known_segments() {
  DUNLIN_ASSERT_ALWAYS(locks.repairing(), "REM-8: locks move while their queues rest");
  for (const auto& slots : known_at)
    for (const auto& slot : slots) {
      if (slot == nullptr) continue;
      KnownSegment& segment = *slot;
      if (segment.key.generation() == 0 || segment.copies < 2 || segment.lost) continue;
      const bool has_backup = segment.backup != kNobody && progress.contains(segment.backup);
      if (!progress.contains(segment.primary)) {
        ++segment.placement;
        if (has_backup) {
          locks.relocate(segment.primary, segment.offset + kLockWord, segment.backup,
                         segment.backup_offset + kLockWord);
          segment.primary = segment.backup;
          segment.offset = segment.backup_offset;
          segment.moved = true;
          segment.unsure = segment.paused;
          if (segment.unsure) locks.park(segment.primary, segment.offset + kLockWord);
          segment.lock_odd = segment.lock.valid();
        }
        segment.lost = !has_backup;
        segment.backup = kNobody;
      } else if (segment.backup != kNobody && !has_backup) {
        ++segment.placement;
        segment.backup = kNobody;
      }
      DUNLIN_ASSERT(segment.lost || progress.contains(segment.primary),
                    "SEG-4: a segment is lost, or at a member");
    }
}

void SegmentState::copies_changed() {
  std::erase_if(pausing, [&](const auto& one) { return !progress.contains(one.first); });
  for (auto next = backups.begin(); next != backups.end();) {
    const auto one = next++;
    if (progress.contains(one->second.primary)) continue;
    const Key key{one->first};
    const BackupCopy copy = one->second;
    if (copy.complete) {
      backups.erase(one);
      adopt(key, copy);
      continue;
    }
    drop_backup(key);
    SegmentMessage message = copy.description;
    message.type = Type::no_copy;
    tell_all(message);
  }
  DUNLIN_ASSERT(
      std::ranges::all_of(backups,
                          [&](const auto& one) { return progress.contains(one.second.primary); }),
      "SEG-13: each copy of a dead primary is taken over or dropped");
  begin_copies();
  for (const auto& [from, message] : std::exchange(early, {})) take_placement(from, message);
}

/// Has a copy made of each segment here that has one copy, and shall have two.
void SegmentState::begin_copies() {
  const auto look_at = [&](Key key, const HeldSegment& segment) {
    const bool has_backup = segment.backup != kNobody && progress.contains(segment.backup);
    if (segment.copies > 1 && !segment.closing && !has_backup && !copying.contains(key.value))
      must_copy = !protocols.start(make_copy(key, {})) || must_copy;
  };
  for (std::uint32_t slot = 0; slot < held.size(); ++slot)
    if (held[slot].taken) look_at(Key::of(fabric.rank(), slot, held[slot].generation), held[slot]);
  std::vector<std::uint64_t> taken_over;
  taken_over.reserve(adopted.size());
  for (const auto& [key, segment] : adopted) taken_over.push_back(key);
  for (const std::uint64_t key : taken_over)
    if (const auto found = adopted.find(key); found != adopted.end())
      look_at(Key{key}, found->second);
}

}  // namespace dunlin
