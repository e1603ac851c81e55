#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/map.hpp"

/// Tables that are added to a part while calls and scans are under way.
namespace dunlin::container {

using remote::Status;

/// Two keys with one hash could not both have a slot that is used again.
constexpr std::uint32_t kMostVainRestarts = 1000;

KeyWindow MapState::window(std::uint32_t number, std::uint64_t hash) const noexcept {
  DUNLIN_ASSERT(number < most_windows, "CON-G1: a key has so many windows");
  const auto last = static_cast<std::uint32_t>(sizes.size() - 1);
  const std::uint32_t level = std::min(number, last), slots = sizes[level];
  const bool is_whole = number + 1 == most_windows;
  // Where one window of the last table is full, those near it often are, too.
  const std::uint64_t place = number > last ? mixed(hash + number) : hash;
  return {.level = level,
          .first = scale(static_cast<std::uint32_t>(place), slots),
          .slots = is_whole ? slots : std::min(slots, window_slots(spec))};
}

void MapState::want_tables(std::uint32_t count) noexcept {
  wanted_tables =
      std::max(wanted_tables, std::min(count, static_cast<std::uint32_t>(sizes.size())));
  hub.look_again_soon();
}

void MapState::grow() {
  DUNLIN_ASSERT(tables() < sizes.size(),
                "CON-G3: a part has no more tables than all members know of");
  try {
    auto table = std::make_unique<MapTable>(hub, spec, shape, tables(), first.site.generation());
    table->site.announce();
    later.push_back(std::move(table));
  } catch (const std::exception& error) {
    why_not_grown = error.what();
    return;
  }
  counters.capacity.set(own_slots());
}

bool MapState::learn_windows(Rank home, std::uint64_t count) noexcept {
  DUNLIN_ASSERT(home < open.size(), "CON-G2: each member has a count of open windows");
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, most_windows));
  if (most <= open[home]) return false;
  open[home] = most;
  return true;
}

MapApplied MapState::passed_all(MapCall call, Promise promise, std::uint64_t hash,
                                std::byte* payload) noexcept {
  if (!takes_slot(call)) return Status::ok;
  const Room room = room_behind(open[self], hash);
  if (room.status == Status::full || room.status == Status::no_memory) return room.status;
  if (!room.offered) return MapApplied::again();
  const OfferedSlot& offered = *room.offered;
  DUNLIN_ASSERT(offered.level < tables() && offered.slot < table(offered.level).slots,
                "CON-M5: a home offers slots of its own part");
  if (updating != nullptr) {
    const Status changed = change_value(false, payload + spec.key_bytes);
    if (changed != Status::ok) return changed;
  }
  return act_on_vacant(call, promise, offered.word, own(table(offered.level), offered.slot),
                       fingerprint_of(hash), payload);
}

/// CON-G2: the count of windows is read after the windows.
Protocol<Status> MapState::pass_window(MapRequest& one, Probe& at) {
  const std::uint32_t next = at.window + 1;
  for (;;) {
    if (next >= at.open && next < most_windows) {
      std::uint64_t count = open[self];
      if (one.home != self) {
        ++one.round_trips;
        const Status status =
            co_await post(first.site, read(one.home, first.site.region(), 0, &count, sizeof count));
        if (status != Status::ok) co_return status;
      }
      learn_windows(one.home, count);
      if (takes_slot(one.call) && open[one.home] > at.open) {  // CON-G5
        at.restart(*this, one);
        co_return Status::under_way;
      }
      at.open = open[one.home];
    }
    if (next < at.open) {
      const std::uint32_t level = window(next, one.hash).level;
      if (level >= tables()) {  // the way to the home's table is a table of our own
        want_tables(level + 1);
        co_await remote::Until([&] { return level < tables() || !why_not_grown.empty(); });
        if (level >= tables()) co_return Status::no_room;
      }
      at.enter(*this, next, one.hash);
      co_return Status::under_way;
    }
    if (!takes_slot(one.call)) co_return Status::ok;
    const Room room = co_await ask_room(one, next);
    if (room.offered) {  // the peer may have sent anything
      const OfferedSlot& offered = *room.offered;
      if (offered.level >= tables() || offered.slot >= table(offered.level).slots)
        co_return Status::full;
      at.table = &table(offered.level);
      at.level = offered.level;
      at.slot = offered.slot;
      at.word = offered.word;
      at.is_offered = true;
      co_return Status::under_way;
    }
    if (room.status == Status::name_taken) {
      at.restart(*this, one);
      co_return ++at.vain_restarts > kMostVainRestarts ? Status::full : Status::under_way;
    }
    if (room.status == Status::busy) co_await Soon(hub);
    if (room.status != Status::ok && room.status != Status::busy) co_return room.status;
  }
}

Protocol<Room> MapState::ask_room(MapRequest& one, std::uint32_t windows_seen) {
  if (one.home == self) co_return room_behind(windows_seen, one.hash);
  const MessageHead head{.container = first.site.id(), .word = windows_seen, .operation = kAskRoom};
  OfferedSlot offered;
  ++one.round_trips;
  Asked asked(hub, first.site, one.home, head, std::as_bytes(std::span(&one.hash, 1)),
              std::as_writable_bytes(std::span(&offered, 1)));
  const Reply reply = co_await asked;
  Room room{.status = reply.status};
  if (reply.bytes == sizeof offered) room.offered = offered;
  co_return room;
}

}  // namespace dunlin::container
