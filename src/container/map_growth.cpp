#include <algorithm>
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
  line.set_capacity(own_slots());
  memory::store(*reinterpret_cast<std::uint64_t*>(first.site.memory()), tables());
}

MapApplied MapState::passed_all(MapCall call) noexcept {
  if (!takes_slot(call)) return {.status = Status::ok};
  if (tables() == sizes.size() || !why_not_grown.empty()) return {.status = Status::full};
  want_tables(tables() + 1);
  return {.again = true};
}

/// The peer may have sent any number.
Status MapState::room_behind(std::uint64_t tables_seen) noexcept {
  if (tables_seen < tables()) return Status::ok;
  if (tables() == sizes.size() || !why_not_grown.empty()) return Status::full;
  want_tables(tables() + 1);
  return Status::busy;
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
  if (level == sizes.size()) {
    op.finish(takes ? Status::full : Status::ok);
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
  if (op.home_ == self) {
    const Status status = room_behind(op.level_ + 1U);
    if (status == Status::full) op.finish(status);
    if (status == Status::ok) op.stage_ = Stage::count;
    return status == Status::ok;
  }
  if (const Status fault = first.site.fault(op.home_); fault != Status::ok) {
    op.finish(fault);
    return false;
  }
  MessageHead head{.container = first.site.id(), .word = op.level_ + 1U};
  head.operation = kAskRoom;
  if (hub.ask(op, op.home_, head, {}) == Hub::Asked::yes) {
    op.stage_ = Stage::room_asked;
    ++op.round_trips_;
  }
  return false;
}

}  // namespace dunlin::container
