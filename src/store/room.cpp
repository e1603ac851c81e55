#include "store/room.hpp"

#include <algorithm>
#include <span>

#include "store/held_chain.hpp"
#include "store/state.hpp"

/// A member that wants room waits without a lock: its pool asks the home; of a store with eviction,
/// the member asks by a message.
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
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

Status State::status_without(const MissingBlock& missing) noexcept {
  const bool is_header = !missing.is_large && missing.size_class == kIndirectClass;
  return is_header ? Status::full : Status::no_room;
}

std::optional<remote::SlabBlock> State::find_block(Rank home, bool is_large,
                                                   std::uint32_t size_class,
                                                   std::uint32_t& asked_for,
                                                   bool& is_full) noexcept {
  remote::SlabPool& pool = is_large ? *large : *small;
  is_full = asked_for == size_class && pool.full_class(home, size_class);
  asked_for = size_class;
  const auto block = is_full && room == nullptr
                         ? pool.allocate_held(home, pool.bytes_of(size_class))
                         : pool.allocate_class(home, size_class);
  // Known at once, with no completion that would wake this process.
  if (!block && !is_full && pool.full_class(home, size_class)) look_again_soon();
  return block;
}

/// Waits for the block that the chain's change has missed, without a lock (STO-V4). The blocks that
/// there were stay.
Protocol<Status> State::await_room(Lookup& at, HeldChain& chain) {
  const MissingBlock missing = chain.missing();
  remote::SlabPool& pool = missing.is_large ? *large : *small;
  Rest rest;
  for (;;) {
    if (const Status why = fault(at.home); why != Status::ok) co_return why;
    const bool is_full = pool.full_class(at.home, missing.size_class);
    const bool is_over = is_full && room == nullptr;
    const auto block = is_over ? pool.allocate_held(at.home, pool.bytes_of(missing.size_class))
                               : pool.allocate_class(at.home, missing.size_class);
    if (block) {
      chain.take_block(*block);
      co_return Status::ok;
    }
    if (is_over) co_return status_without(missing);
    if (room == nullptr) {
      co_await NextPoll();
      continue;
    }
    Status why = Status::ok;
    if (pool.full_class(at.home, missing.size_class))
      why = ask_for_room(at.home, missing.is_large, missing.size_class, chain.room_since_ns());
    if (why != Status::ok) co_return why;
    co_await rest.next(fabric);
  }
}

/// An entry counts as used if it was marked since the hand passed it. A reader marks it once for
/// each time that the hand has passed, as far as the reader knows: most gets mark nothing.
void State::mark(Rank home, std::uint64_t hash, std::uint64_t word) noexcept {
  if (room == nullptr) return;
  const Location location = slot_word::location_of(word);
  remote::SlabPool& pool = pool_of(location);
  const std::uint64_t hand = room->of_homes[home].hands[location.large ? 1 : 0];
  const bool passed = pool.slab_of(location.offset) < (hand & UINT32_MAX);
  const std::uint64_t tag = hash + ((hand >> 32) + (passed ? 1 : 0) + 1) * kGoldenRatio;
  std::uint64_t& known = room->marked[hash % Room::kMarked];
  if (known == tag) return;
  const Operation mark = pool.mark({home, location.size_class, location.offset});
  if (fabric.post(mark).refusal != Refusal::none) return;  // the next get will
  known = tag;
  ++counters.marks;
}

}  // namespace dunlin::store
