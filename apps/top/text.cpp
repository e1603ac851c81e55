#include "top/text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <dunlin/group.hpp>

#include "top/counters_text.hpp"
#include "top/format.hpp"

namespace dunlin::top {
namespace {

constexpr std::string_view kUnknown = "-";

std::size_t most_value_width(const Page& page) {
  constexpr std::size_t kLeast = 24;
  constexpr std::size_t kMost = 120;
  return page.width == SIZE_MAX ? kMost : std::clamp(page.width * 2 / 5, kLeast, kMost);
}

std::string ago(const Sample& sample, std::uint64_t then_ns) {
  return duration_text(sample.now_ns - std::min(sample.now_ns, then_ns));
}

std::string counted(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// --- members -------------------------------------------------------------------------------------

/// How a process fares in three words, and whether that is a reason to look twice.
struct Health {
  std::string text;
  bool good;
};

Health health_of(const Member& member) {
  if (!member.process) return {"gone", false};
  const char state = member.process->state;
  const bool good = state == 'R' || state == 'S' || state == 'D' || state == 'I';
  return {std::string(describe_state(state)), good};
}

/// A loop that has not polled for so long, and does not wait either, is busy with something else.
constexpr std::uint64_t kSilentNs = 1'000'000'000;

std::string loop_text(const Sample& sample, const Member& member) {
  if (!member.loop) return std::string(kUnknown);
  if (member.loop->asleep) return "waiting";
  if (member.loop->last_watch_ns == 0) return "joining";
  return member.loop->last_watch_ns + kSilentNs < sample.now_ns ? "silent" : "polling";
}

std::vector<std::string> member_cells(const Sample& sample, const Member& m) {
  const bool watched = m.loop && m.loop->last_watch_ns != 0;
  return {std::to_string(m.rank),
          printable(m.name),
          std::to_string(m.pid),
          m.process ? printable(m.process->command) : std::string(kUnknown),
          health_of(m).text,
          m.cpu_percent ? fmt::format("{:.1f}", *m.cpu_percent) : std::string(kUnknown),
          loop_text(sample, m),
          watched ? ago(sample, m.loop->last_watch_ns) : std::string(kUnknown)};
}

void print_members(std::vector<Line>& to, const Sample& sample, const Group& group,
                   const Page& page) {
  TextTable table;
  table.add_column("RANK", Align::right);
  table.add_column("NAME", Align::left);
  table.add_column("PID", Align::right);
  table.add_column("COMMAND", Align::left);
  table.add_column("PROCESS", Align::left);
  table.add_column("CPU %", Align::right);
  table.add_column("LOOP", Align::left);
  table.add_column("POLLED", Align::right);
  const std::string none(kUnknown);
  for (Rank rank = 0; rank < group.size; ++rank) {
    if (group.member(rank) == nullptr) {
      table.add_row({std::to_string(rank), "", none, none, "absent", none, none, none},
                    Style::alarm);
    }
    for (const Member& m : group.members) {
      if (m.rank != rank) continue;
      table.add_row(member_cells(sample, m), health_of(m).good ? Style::plain : Style::alarm);
    }
  }
  table.print(to, page);
}

void print_title(std::vector<Line>& to, const Group& group, const Page& page) {
  std::string text = fmt::format("group {} ({}, {})", printable(group.name),
                                 printable(group.fabric), printable(group.access));
  text += fmt::format(", {} of {} here", group.members.size(), counted(group.size, "member"));
  to.push_back({shortened(std::move(text), page.width), Style::title});
}

// --- rows ----------------------------------------------------------------------------------------

int badness(RowState state) {
  switch (state) {
    case RowState::own:
    case RowState::connected:
      return 0;
    case RowState::waiting:
      return 1;
    case RowState::behind:
      return 2;
    default:
      return 3;
  }
}

/// The worst state of a row at the other nodes, and how many of them say so if not all do.
Health state_of(const Sample& sample, const Row& row) {
  if (row.seen.empty()) return {"alone", true};
  const Sighting& worst =
      *std::max_element(row.seen.begin(), row.seen.end(), [](const Sighting& a, const Sighting& b) {
        return badness(a.status.state) < badness(b.status.state);
      });
  const RowState state = worst.status.state;
  std::string text(describe(state));
  if (badness(state) == badness(RowState::failed) && worst.status.since_ns != 0) {
    text += " " + ago(sample, worst.status.since_ns) + " ago";
  }
  const auto agreeing = std::count_if(row.seen.begin(), row.seen.end(),
                                      [&](const Sighting& s) { return s.status.state == state; });
  if (static_cast<std::size_t>(agreeing) != row.seen.size()) {
    text += fmt::format(" ({} of {})", agreeing, row.seen.size());
  }
  return {std::move(text), badness(state) < badness(RowState::failed)};
}

/// The counter of the operations by which a node keeps its table fresh.
const Counter& refreshes(const Table& table, const TableSample& sample) {
  return table.refresh == Refresh::writes ? sample.pushes : sample.pulls;
}

std::vector<std::string> row_cells(const Sample& sample, const Group& group, const Table& table,
                                   const Row& row, const Page& page) {
  const Node* owner = table.node(row.rank);
  const bool counted_here = owner != nullptr && owner->counters;
  std::vector<std::string> cells{
      std::to_string(row.row), printable(group.name_of(row.rank)), state_of(sample, row).text,
      row.age_ns ? duration_text(*row.age_ns) : std::string(kUnknown),
      counted_here ? rate_text(refreshes(table, *owner->counters).per_s) : std::string(kUnknown)};
  for (std::size_t i = 0; i < table.layout.columns.size(); ++i) {
    cells.push_back(i < row.values.size() ? values_text(table.layout.columns[i], row.values[i],
                                                        most_value_width(page))
                                          : std::string(kUnknown));
  }
  return cells;
}

bool is_number(const Column& column) {
  return column.kind == ColumnKind::word && column.count == 1 && column.type < EntryType::text &&
         column.type != EntryType::boolean;
}

void print_rows(std::vector<Line>& to, const Sample& sample, const Group& group, const Table& table,
                const Page& page) {
  TextTable rows;
  rows.add_column("ROW", Align::right);
  rows.add_column("NODE", Align::left);
  rows.add_column("STATE", Align::left);
  rows.add_column("AGE", Align::right);
  rows.add_column(table.refresh == Refresh::writes ? "PUSH/s" : "PULL/s", Align::right);
  rows.pin();
  for (const Column& column : table.layout.columns) {
    rows.add_column(printable(column.name), is_number(column) ? Align::right : Align::left);
  }
  for (const Row& row : table.rows) {
    rows.add_row(row_cells(sample, group, table, row, page),
                 state_of(sample, row).good ? Style::plain : Style::alarm);
  }
  rows.print(to, page);
}

// --- predicates ----------------------------------------------------------------------------------

void print_predicates(std::vector<Line>& to, const Group& group, const Table& table,
                      const Page& page) {
  constexpr std::size_t kMostNameWidth = 40;
  TextTable predicates;
  predicates.add_column("NODE", Align::left);
  predicates.add_column("PREDICATE", Align::left);
  predicates.add_column("KIND", Align::left);
  predicates.add_column("EVAL/s", Align::right);
  predicates.add_column("FIRED", Align::right);
  predicates.add_column("FIRED/s", Align::right);
  std::size_t shown = 0;
  std::uint64_t registered = 0;
  for (const Node& node : table.nodes) {
    if (!node.counters) continue;
    registered += node.counters->predicates_registered;
    for (const PredicateSample& p : node.counters->predicates) {
      ++shown;
      const std::size_t width = page.width == SIZE_MAX ? SIZE_MAX : kMostNameWidth;
      predicates.add_row({printable(group.name_of(node.rank)), shortened(printable(p.name), width),
                          std::string(describe(p.kind)), rate_text(p.evaluations.per_s),
                          count_text(p.firings.total), rate_text(p.firings.per_s)});
    }
  }
  if (shown == 0 && registered == 0) {
    to.push_back({"  no predicates are registered", Style::faint});
    return;
  }
  predicates.print(to, page);
  if (registered > shown) {
    to.push_back({fmt::format("  {} more are registered than a table can show", registered - shown),
                  Style::faint});
  }
}

// --- multicasts ----------------------------------------------------------------------------------

std::string or_unknown(const std::optional<double>& number, std::string_view unit) {
  return number ? fmt::format("{:.1f}{}", *number, unit) : std::string(kUnknown);
}

std::vector<std::string> multicast_cells(const Sample& sample, const Group& group,
                                         const Table& table, const Row& row) {
  std::vector<std::string> cells{printable(group.name_of(row.rank)), state_of(sample, row).text};
  const Node* const node = table.node(row.rank);
  const MulticastSample* const member =
      node != nullptr && node->multicast ? &*node->multicast : nullptr;
  constexpr std::size_t kCounts = 7;
  if (member == nullptr) {
    cells.insert(cells.end(), kCounts, std::string(kUnknown));
    return cells;
  }
  for (const Counter* counter : {&member->messages, &member->bytes})
    cells.push_back(rate_text(counter->per_s));
  cells.push_back(or_unknown(member->messages_per_batch(), ""));
  cells.push_back(rate_text(member->nulls.per_s));
  cells.push_back(member->latency_ns ? latency_text(*member->latency_ns) : std::string(kUnknown));
  cells.push_back(or_unknown(member->no_room_percent(), " %"));
  cells.push_back(count_text(table.behind(*member)));
  return cells;
}

/// The view, and for a subgroup that came at run time the number of the change.
std::string view_text(std::uint64_t generation) {
  const std::uint64_t view = generation >> Subgroup::kChangeBits;
  if (view == 0) return std::to_string(generation);
  return fmt::format("{}.{}", view, generation & ((std::uint64_t{1} << Subgroup::kChangeBits) - 1));
}

/// A multicast in the terms of an operator; the columns of its table are for the members.
void print_multicast(std::vector<Line>& to, const Sample& sample, const Group& group,
                     const Table& table, std::string_view subgroup, const Page& page) {
  std::string title =
      fmt::format("multicast {}: view {}, {}", printable(subgroup), view_text(table.generation),
                  counted(table.ranks.size(), "member"));
  if (table.made_ns) title += ", since " + ago(sample, *table.made_ns);
  const std::optional<Rank> slowest = table.slowest();
  if (slowest) title += "; slowest: " + printable(group.name_of(*slowest));
  to.push_back({});
  to.push_back({shortened(std::move(title), page.width), Style::title});
  TextTable members;
  members.add_column("MEMBER", Align::left);
  members.add_column("STATE", Align::left);
  for (const char* const heading :
       {"MSG/s", "BYTES/s", "MSG/BATCH", "NULLS/s", "LATENCY", "NO ROOM", "BEHIND"})
    members.add_column(heading, Align::right);
  for (const Row& row : table.rows)
    members.add_row(multicast_cells(sample, group, table, row),
                    state_of(sample, row).good ? Style::plain : Style::alarm);
  members.print(to, page);
}

void print_table(std::vector<Line>& to, const Sample& sample, const Group& group,
                 const Table& table, const Page& page) {
  const auto subgroup = multicast_of(table.name, table.layout);
  if (subgroup && !page.raw) return print_multicast(to, sample, group, table, *subgroup, page);
  std::string title = fmt::format("table {}: {} of {} bytes, {}", printable(table.name),
                                  counted(table.ranks.size(), "row"), table.layout.row_bytes,
                                  table.refresh == Refresh::writes ? "pushed" : "pulled");
  if (table.generation != 1) title += fmt::format(", generation {}", table.generation);
  if (table.made_ns) title += ", made " + ago(sample, *table.made_ns) + " ago";
  to.push_back({});
  to.push_back({shortened(std::move(title), page.width), Style::title});
  print_rows(to, sample, group, table, page);
  to.push_back({});
  print_predicates(to, group, table, page);
}

void print_remarks(std::vector<Line>& to, const Sample& sample, const Page& page) {
  if (sample.remarks.empty()) return;
  to.push_back({});
  for (const std::string& remark : sample.remarks) {
    to.push_back({shortened(printable(remark), page.width), Style::alarm});
  }
}

}  // namespace

std::vector<Line> describe_group(const Sample& sample, const Group& group, const Page& page) {
  std::vector<Line> lines;
  print_title(lines, group, page);
  print_members(lines, sample, group, page);
  for (const Table& table : group.tables) print_table(lines, sample, group, table, page);
  if (group.tables.empty()) lines.push_back({"  it has no tables", Style::faint});
  print_counters(lines, group, page);
  return lines;
}

std::vector<Line> describe_groups(const Sample& sample, const Page& page) {
  std::vector<Line> lines;
  for (const Group& group : sample.groups) {
    if (!lines.empty()) lines.push_back({});
    print_title(lines, group, page);
    print_members(lines, sample, group, page);
    std::string tables;
    for (const Table& table : group.tables) {
      tables += tables.empty() ? "  tables: " : ", ";
      tables += fmt::format("{} ({})", printable(table.name), counted(table.ranks.size(), "row"));
    }
    if (tables.empty()) tables = "  it has no tables";
    for (const std::string& object : counted_objects(group)) tables += ", " + object;
    lines.push_back({shortened(std::move(tables), page.width)});
  }
  return lines;
}

std::vector<Line> describe(const Sample& sample, const Page& page) {
  std::vector<Line> lines;
  if (sample.groups.size() == 1) {
    lines = describe_group(sample, sample.groups.front(), page);
  } else if (!sample.groups.empty()) {
    lines = describe_groups(sample, page);
  } else {
    lines.push_back({"No Dunlin group that you may look at runs on this host."});
  }
  print_remarks(lines, sample, page);
  return lines;
}

}  // namespace dunlin::top
