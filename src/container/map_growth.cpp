#include <algorithm>
#include <cstring>
#include <exception>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"
#include "fault_injection.hpp"

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
  if (!takes_slot(call)) return {.status = Status::ok};
  const Room room = room_behind(tables(), hash);
  if (room.status == Status::full) return {.status = Status::full};
  if (!room.offered) return {.again = true};
  std::memcpy(image.data(), &room.offered->word, sizeof room.offered->word);
  return local_act(call, promise, Sight::vacant,
                   own(table(room.offered->level), room.offered->slot), fingerprint_of(hash),
                   payload);
}

/// The peer may have sent any number.
Room MapState::room_behind(std::uint64_t tables_seen, std::uint64_t hash) {
  if (tables_seen < tables()) return {.status = Status::ok};
  if (!may_grow()) return offer(hash);
  want_tables(tables() + 1);
  return {.status = Status::busy};
}

// --- at the caller -------------------------------------------------------------------------------

void MapState::learn_tables(Rank home, std::uint64_t count) noexcept {
  const auto most = std::min<std::uint64_t>(count, sizes.size());
  known[home] = std::max(known[home], static_cast<std::uint32_t>(most));
}

/// Behind a window without a vacant slot.
bool MapState::next_table(MapOperation& op) noexcept {
  const std::uint32_t level = op.level_ + 1U;
  const bool takes = takes_slot(op.call_kind_);
  if (level == sizes.size() && takes) {
    op.stage_ = Stage::ask_room;
    return true;
  }
  if (level == sizes.size()) {
    op.finish(Status::ok);
    return false;
  }
  if (level >= known[op.home_]) {
    op.stage_ = Stage::count;
    return true;
  }
  if (level >= tables()) {  // the way to the home's table is a table of our own
    want_tables(level + 1);
    if (!why_not_grown.empty()) op.finish(Status::no_room);
    return false;
  }
  op.level_ = static_cast<std::uint8_t>(level);
  op.table_ = &table(level);
  op.slot_ = op.table_->first_slot(hash_of(op.payload_, spec.key_bytes));
  op.probed_ = 0;
  op.stage_ = Stage::look;
  return true;
}

/// CON-G2: the count is read after the windows.
bool MapState::count_tables(MapOperation& op) noexcept {
  if (op.home_ == self) {
    op.before_ = tables();
    op.stage_ = Stage::counted;
    return true;
  }
  const Operation get =
      read(op.home_, first.site.region(), 0, &op.before_, sizeof op.before_).notify(op.completion_);
  return post(op, first.site, std::span(&get, 1), Stage::counted);
}

bool MapState::counted_tables(MapOperation& op) noexcept {
  if (!is_injected(FaultInjection::added_table_is_not_searched) || takes_slot(op.call_kind_))
    learn_tables(op.home_, op.before_);
  if (op.level_ + 1U < known[op.home_]) {
    op.stage_ = Stage::next_table;
    return true;
  }
  if (!takes_slot(op.call_kind_)) {
    op.finish(Status::ok);
    return false;
  }
  op.stage_ = Stage::ask_room;
  return true;
}

bool MapState::ask_room(MapOperation& op) noexcept {
  const std::uint64_t hash = hash_of(op.payload_, spec.key_bytes);
  if (op.home_ == self) return take_room(op, room_behind(op.level_ + 1U, hash));
  if (const Status fault = first.site.fault(op.home_); fault != Status::ok) {
    op.finish(fault);
    return false;
  }
  MessageHead head{.container = first.site.id(), .word = op.level_ + 1U};
  head.operation = kAskRoom;
  if (hub.ask(op, op.home_, head, std::as_bytes(std::span(&hash, 1))) == Hub::Sent::yes) {
    op.stage_ = Stage::room_asked;
    ++op.round_trips_;
  }
  return false;
}

}  // namespace dunlin::container
