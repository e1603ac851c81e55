#include "top/published_text.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "top/format.hpp"

namespace dunlin::top {
namespace {

constexpr std::string_view kUnknown = "-";

void print_title(std::vector<Line>& to, std::string title, const Page& page) {
  to.push_back({});
  to.push_back({shortened(std::move(title), page.width), Style::title});
}

/// After that of the member's name.
void add_columns(TextTable& members, std::initializer_list<const char*> headings) {
  members.add_column("MEMBER", Align::left);
  for (const char* const heading : headings) members.add_column(heading, Align::right);
}

std::string percent_text(std::optional<double> percent) {
  return percent ? fmt::format("{:.1f} %", *percent) : std::string(kUnknown);
}

void print_locks(std::vector<Line>& to, const Group& group, const Space& space, const Page& page) {
  for (const SpaceLock& lock : space.locks()) {
    std::string text =
        fmt::format("  lock at {} + {}: ", printable(group.name_of(lock.home)), lock.offset);
    text += lock.holder ? "held by " + printable(group.name_of(*lock.holder)) : "held elsewhere";
    for (std::size_t i = 0; i < lock.waiters.size(); ++i)
      text += (i == 0 ? "; waiting: " : ", ") + printable(group.name_of(lock.waiters[i]));
    to.push_back({shortened(std::move(text), page.width)});
  }
}

/// The part of a store that one member holds.
std::vector<std::string> part_cells(const StoreMember::Part& part) {
  const auto percent = [](std::uint64_t of, std::uint64_t all) -> std::optional<double> {
    if (all == 0) return std::nullopt;
    return 100 * static_cast<double>(of) / static_cast<double>(all);
  };
  return {count_text(part.keys),
          count_text(part.value_bytes),
          percent_text(percent(part.main_slots_used, part.main_slots)),
          count_text(part.indirect_headers),
          count_text(part.indirect_headers_free),
          count_text(part.memory_bytes),
          count_text(part.used_bytes),
          count_text(part.held_bytes - std::min(part.used_bytes, part.held_bytes)),
          part.limit_bytes == 0 ? std::string(kUnknown) : count_text(part.limit_bytes),
          rate_text(part.evictions.per_s),
          count_text(part.locked_chains)};
}

}  // namespace

void print_space(std::vector<Line>& to, const Group& group, const Space& space, const Page& page) {
  print_title(to, "segment space " + printable(space.name), page);
  TextTable members;
  add_columns(members,
              {"POOL", "USED", "BLOCKS", "FRAGM.", "GET/s", "PUT/s", "LOCK/s", "IN FLIGHT"});
  for (const SpaceMember& member : space.members)
    members.add_row(
        {printable(group.name_of(member.rank)), count_text(member.pool_bytes),
         count_text(member.used_bytes), count_text(member.blocks),
         fmt::format("{:.2f}", member.fragmentation()), rate_text(member.gets.per_s),
         rate_text(member.puts.per_s), rate_text(member.locks.per_s), count_text(member.in_flight)},
        Style::plain);
  members.print(to, page);
  print_locks(to, group, space, page);
}

void print_store(std::vector<Line>& to, const Group& group, const StoreSample& store,
                 const Page& page) {
  print_title(to, "store " + printable(store.name), page);
  TextTable parts, calls;
  add_columns(parts, {"KEYS", "VALUES", "SLOTS", "INDIR.", "FREE", "MEMORY", "USED", "UNUSED",
                      "LIMIT", "EVICT/s", "LOCKED"});
  add_columns(calls, {"GET/s", "PUT/s", "ERASE/s", "OTHER/s", "HITS", "STALE/s", "WAIT/s", "ROOM/s",
                      "IN FLIGHT"});
  bool has_parts = false;
  for (const StoreMember& member : store.members) {
    const std::string name = printable(group.name_of(member.rank));
    if (member.part) {
      std::vector<std::string> cells = part_cells(*member.part);
      cells.insert(cells.begin(), name);
      parts.add_row(std::move(cells));
      has_parts = true;
    }
    calls.add_row({name, rate_text(member.gets.per_s), rate_text(member.puts.per_s),
                   rate_text(member.erases.per_s), rate_text(member.others.per_s),
                   percent_text(member.hit_percent()), rate_text(member.cache_stale.per_s),
                   rate_text(member.lock_waits.per_s), rate_text(member.waits_for_room.per_s),
                   count_text(member.in_flight)});
  }
  if (has_parts) {
    parts.print(to, page);
    to.push_back({});
  }
  calls.print(to, page);
}

void print_containers(std::vector<Line>& to, const Group& group, const ContainersSample& containers,
                      const Page& page) {
  print_title(to, "containers of channel " + printable(containers.name), page);
  TextTable table;
  table.add_column("CONTAINER", Align::left);
  add_columns(table, {"ENTRIES", "CAPACITY", "ONE-SIDED/s", "MESSAGE/s", "LOCAL/s", "SERVED/s"});
  const auto known_text = [](const std::optional<std::uint64_t>& count) {
    return count ? count_text(*count) : std::string(kUnknown);
  };
  for (const auto& [member, container] : containers.lines())
    table.add_row({container->kind + " " + printable(container->name),
                   printable(group.name_of(member->rank)), known_text(container->entries),
                   known_text(container->capacity), rate_text(container->one_sided.per_s),
                   rate_text(container->by_message.per_s), rate_text(container->local.per_s),
                   rate_text(container->served.per_s)});
  table.print(to, page);
  std::string in_flight = "  in flight:";
  std::uint64_t not_shown = 0;
  for (const ContainersMember& member : containers.members) {
    in_flight += fmt::format("{} {} {}", &member == &containers.members.front() ? "" : ",",
                             printable(group.name_of(member.rank)), count_text(member.in_flight));
    not_shown = std::max(not_shown, member.not_shown);
  }
  to.push_back({shortened(std::move(in_flight), page.width)});
  if (not_shown != 0)
    to.push_back({shortened(fmt::format("  {} more containers", not_shown), page.width)});
}

void print_relays(std::vector<Line>& to, const Group& group, const Page& page) {
  if (group.relays.empty()) return;
  print_title(to, "relays", page);
  TextTable table;
  table.add_column("AT", Align::left);
  add_columns(table, {"CLIENTS", "HELD", "QUEUED", "IN/s", "BYTES/s", "OUT/s", "BYTES/s", "SKIP/s",
                      "SLOW", "BACK", "BAD"});
  for (const RelaySample& relay : group.relays)
    for (const RelayMember& member : relay.members)
      table.add_row({printable(relay.name), printable(group.name_of(member.rank)),
                     count_text(member.clients), count_text(member.blocked_clients),
                     count_text(member.waiting_bytes), rate_text(member.published.per_s),
                     rate_text(member.published_bytes.per_s), rate_text(member.delivered.per_s),
                     rate_text(member.delivered_bytes.per_s), rate_text(member.skipped.per_s),
                     count_text(member.dropped.total), count_text(member.resumed.total),
                     count_text(member.rejected.total)});
  table.print(to, page);
}

}  // namespace dunlin::top
