#include "store/room.hpp"

#include <algorithm>
#include <span>

#include "store/state.hpp"

/// A member that wants room waits without a lock: its pool asks the home; of a store with eviction,
/// the member asks by a message.
namespace dunlin::store {

using remote::Status;

namespace {

/// A home that has not answered is asked again.
constexpr std::uint64_t kAskAgainNs = 20'000'000;
constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;

}  // namespace

void State::open_room() {
  if (options.eviction == Eviction::none) return;
  room = std::make_unique<Room>(
      progress, options.channel, homes.size(),
      [this](Rank from, std::span<const std::byte> message) { take_message(from, message); });
  if (!is_home) return;
  room->small = std::make_unique<Evictor>(*this, *small, false);
  room->large = std::make_unique<Evictor>(*this, *large, true);
}

/// A peer may send any numbers: each pool checks them.
void State::take_message(Rank from, std::span<const std::byte> bytes) {
  RoomMessage message;
  if (!remote::parse(bytes, message) || message.size_class >= Room::kMostClasses) return;
  remote::SlabPool& pool = message.is_large != 0 ? *large : *small;
  const auto slabs =
      std::span(message.slabs).first(std::min<std::size_t>(message.count, kMostHints));
  switch (message.request) {
    case RoomRequest::ask:
      // Of a home, until its store ends.
      if (Evictor* const evictor = (message.is_large != 0 ? room->large : room->small).get())
        evictor->want(from, message.size_class);
      return look_again_soon();
    case RoomRequest::look: {
      if (from >= room->of_homes.size()) return;
      Room::OfHome& home = room->of_homes[from];
      const std::size_t which = message.is_large != 0 ? 1 : 0;
      home.asked_at_ns[which][message.size_class] = 0;
      for (const std::uint32_t slab : slabs) pool.hint(from, message.size_class, slab);
      return look_again_soon();
    }
    case RoomRequest::withdraw:
      for (const std::uint32_t slab : slabs) pool.withdraw(from, slab);
      return;
    case RoomRequest::keep:
      for (const std::uint32_t slab : slabs) pool.keep(from, slab);
      return;
  }
}

/// Once for all calls, until the home answers.
Status State::ask_for_room(Rank rank, bool is_large, std::uint32_t size_class,
                           std::uint64_t& since_ns) noexcept {
  const std::uint64_t now = std::max<std::uint64_t>(fabric.now_ns(), 1);
  std::uint64_t& asked_at = room->of_homes[rank].asked_at_ns[is_large ? 1 : 0][size_class];
  if (since_ns == 0) since_ns = now;
  if (asked_at == 0 || now - asked_at > kAskAgainNs) {
    asked_at = now;
    ++counters.waits_for_room;
    room->channel.send(
        rank,
        RoomMessage{.request = RoomRequest::ask, .is_large = is_large, .size_class = size_class});
  }
  return now - since_ns > options.wait_for_room_ns ? Status::no_room : Status::ok;
}

/// Not yet there, or never. Calls that hold locks of others wait with them: for a second at most.
bool State::without_block(StoreOperation& op, bool is_large, std::uint32_t size_class) noexcept {
  const Work& work = *op.work_;
  if (work.out_of_room && room == nullptr) return leave(op, status_without(is_large, size_class));
  if (work.out_of_room) return wait_for_room(op, is_large, size_class);
  const remote::SlabPool& pool = is_large ? *large : *small;
  const bool may_unlock = !is_copy(work.kind) && !work.lock_is_held;
  return may_unlock && pool.asks(work.home) ? wait_for_room(op, is_large, size_class) : false;
}

Status State::status_without(bool is_large, std::uint32_t size_class) noexcept {
  return !is_large && size_class == kIndirectClass ? Status::full : Status::no_room;
}

/// STO-V4. The lock is given back first; the blocks that there were stay.
bool State::wait_for_room(StoreOperation& op, bool is_large, std::uint32_t size_class) noexcept {
  Work& work = *op.work_;
  work.room_is_large = is_large;
  work.room_class = size_class;
  work.waits_for_room = true;
  op.changed_ = false;
  build_unlock(work, false);
  return commit(op);
}

/// The block of the size that was missing; then the change begins anew.
bool State::await_room(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (const Status why = fault(work.home); why != Status::ok) return end(op, why);
  remote::SlabPool& pool = work.room_is_large ? *large : *small;
  const bool is_over = room == nullptr && pool.full_class(work.home, work.room_class);
  const auto block = is_over ? pool.allocate_held(work.home, pool.bytes_of(work.room_class))
                             : pool.allocate_class(work.home, work.room_class);
  if (!block) {
    if (is_over) return end(op, status_without(work.room_is_large, work.room_class));
    if (room == nullptr) return false;
    if (pool.full_class(work.home, work.room_class)) {
      const Status why =
          ask_for_room(work.home, work.room_is_large, work.room_class, work.room_since_ns);
      if (why != Status::ok) return end(op, why);
    }
    begin_rest(work.rest);
    return false;
  }
  if (work.room_class == kIndirectClass && !work.room_is_large) {
    work.bucket_block = *block;
    work.has_bucket_block = true;
  } else {
    work.entry_block = *block;
    work.has_entry_block = true;
    work.entry_is_large = work.room_is_large;
  }
  work.rest = {};
  work.tries = 0;
  begin_lookup(work);
  return true;
}

void State::begin_eviction(StoreOperation& op, StoreKey key, const Location& victim) noexcept {
  prepare(op, Kind::evict, key, {}, kNoExpiry, 0, nullptr);
  op.work_->victim = victim;
  op.start();
}

/// An entry counts as used if it was marked since the hand passed it. A reader marks it once for
/// each time that the hand has passed, as far as the reader knows: most gets mark nothing.
void State::mark(const Work& work) noexcept {
  if (room == nullptr) return;
  const Location location = slot_word::location_of(work.slot.word);
  remote::SlabPool& pool = pool_of(location);
  const std::uint64_t hand = room->of_homes[work.home].hands[location.large ? 1 : 0];
  const bool passed = pool.slab_of(location.offset) < (hand & UINT32_MAX);
  const std::uint64_t tag = work.hash + ((hand >> 32) + (passed ? 1 : 0) + 1) * kGoldenRatio;
  std::uint64_t& known = room->marked[work.hash % Room::kMarked];
  if (known == tag) return;
  const Operation mark = pool.mark({work.home, location.size_class, location.offset});
  if (fabric.post(mark).refusal != Refusal::none) return;  // the next get will
  known = tag;
  ++counters.marks;
}

}  // namespace dunlin::store
