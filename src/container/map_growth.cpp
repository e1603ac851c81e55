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

// --- at the home ---------------------------------------------------------------------------------

void MapState::want_tables(std::uint32_t count) noexcept {
  wanted_tables =
      std::max(wanted_tables, std::min(count, static_cast<std::uint32_t>(sizes.size())));
  hub.look_again_soon();
}

/// The table comes first, and then the count that sends others there.
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
  known[self] = tables();
  counters.capacity.set(own_slots());
  memory::store(*reinterpret_cast<std::uint64_t*>(first.site.memory()), tables());
}

MapApplied MapState::passed_all(MapCall call, Promise promise, std::uint64_t hash,
                                std::byte* payload) noexcept {
  if (!takes_slot(call)) return Status::ok;
  const Room room = room_behind(tables(), hash);
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

/// The peer may have sent any number.
Room MapState::room_behind(std::uint64_t tables_seen, std::uint64_t hash) {
  if (tables_seen < tables()) return {.status = Status::ok};
  if (!may_grow()) try {
      return offer(hash);
    } catch (const std::bad_alloc&) {
      return {.status = Status::no_memory};
    }
  want_tables(tables() + 1);
  return {.status = Status::busy};
}

// --- at the caller -------------------------------------------------------------------------------

void MapState::learn_tables(Rank home, std::uint64_t count) noexcept {
  DUNLIN_ASSERT(home < known.size(), "CON-G2: each member has a count of tables");
  const auto most = std::min<std::uint64_t>(count, sizes.size());
  known[home] = std::max(known[home], static_cast<std::uint32_t>(most));
}

/// CON-G2: the count of tables is read after the windows.
Protocol<Status> MapState::pass_table(MapRequest& one, Probe& at) {
  const std::uint32_t next = at.level + 1;
  DUNLIN_ASSERT(at.probed >= at.table->window, "CON-G1: a window is passed as a whole");
  for (;;) {
    if (next < sizes.size() && next >= known[one.home]) {
      std::uint64_t count = tables();
      if (one.home != self) {
        ++one.round_trips;
        const Status status =
            co_await post(first.site, read(one.home, first.site.region(), 0, &count, sizeof count));
        if (status != Status::ok) co_return status;
      }
      learn_tables(one.home, count);
    }
    if (next < known[one.home]) {
      if (next >= tables()) {  // the way to the home's table is a table of our own
        want_tables(next + 1);
        co_await remote::Until([&] { return next < tables() || !why_not_grown.empty(); });
        if (next >= tables()) co_return Status::no_room;
      }
      at.enter(table(next), next, one.hash);
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
    if (room.status == Status::name_taken)
      co_return at.restart(*this, one) ? Status::under_way : Status::full;
    if (room.status == Status::busy) co_await Soon(hub);
    if (room.status != Status::ok && room.status != Status::busy) co_return room.status;
  }
}

Protocol<Room> MapState::ask_room(MapRequest& one, std::uint32_t tables_seen) {
  if (one.home == self) co_return room_behind(tables_seen, one.hash);
  const MessageHead head{.container = first.site.id(), .word = tables_seen, .operation = kAskRoom};
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
