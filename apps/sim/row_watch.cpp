#include "sim/row_watch.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::app::sim {
namespace {

/// The table by which the members of a view agree.
constexpr std::string_view kViewTable = "view";

std::uint64_t word(const TableCore& table, std::size_t row, std::size_t index) {
  return memory::load(reinterpret_cast<const std::uint64_t*>(table.row(row))[index]);
}

std::size_t offset_of(const TableCore& table, std::string_view column) {
  const std::vector<Column>& columns = table.layout().columns;
  return std::ranges::find(columns, column, &Column::name)->offset / kWordBytes;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string owner_of(const TableCore& table, std::size_t row) {
  return table.fabric().member_name(table.members()[row]);
}

}  // namespace

/// All columns are monotonic, but for what a member has accepted of a proposal, which changes with
/// the ballot, for what a line carries of a ring, and for what is only shown to observers.
std::vector<RowWatch::Growth> RowWatch::growth_in(const TableCore& table) {
  std::vector<Growth> growth(table.layout().row_bytes / kWordBytes, Growth::none);
  for (const Column& column : table.layout().columns) {
    const bool of_view = table.options().name == kViewTable;
    const bool proposed =
        of_view && (column.name == "survivors" || column.name == "plan" || column.name == "trim");
    const bool carried = !of_view && column.name == "inlined";
    if (proposed || carried) continue;
    const bool is_set = of_view && column.name == "suspects";
    std::fill_n(growth.begin() + static_cast<std::ptrdiff_t>(column.offset / kWordBytes),
                column.bytes / kWordBytes, is_set ? Growth::bits : Growth::number);
  }
  return growth;
}

RowWatch::Seen& RowWatch::seen_of(const TableCore& table) {
  const TableOptions& options = table.options();
  const auto found = std::ranges::find_if(tables_, [&](const Seen& seen) {
    return seen.generation == options.generation && seen.table == options.name;
  });
  if (found != tables_.end()) return *found;
  std::vector<Growth> growth = growth_in(table);
  const std::size_t words = table.size() * growth.size();
  tables_.push_back({.table = options.name,
                     .generation = options.generation,
                     .growth = std::move(growth),
                     .rows = std::vector<std::uint64_t>(words),
                     .still = std::vector<bool>(table.size())});
  return tables_.back();
}

bool RowWatch::is_shaped(const TableCore& table, const Seen& seen) {
  return table.size() == seen.still.size() &&
         table.layout().row_bytes == seen.growth.size() * kWordBytes;
}

void RowWatch::look(const TableCore& table, const View& view) {
  Seen& seen = seen_of(table);
  // There is one of each name and view, or the code that is watched is wrong.
  if (!is_shaped(table, seen))
    return complain(table, table.my_row(), "after a table of the same view with other rows");
  // Its own view may not have begun yet: a joiner is in no view before its first one.
  const bool other_view = seen.view != view.number && view.number >= seen.generation;
  seen.view = view.number;
  for (std::size_t row = 0; row < table.size(); ++row) {
    compare(table, seen, row);
    if (!table.alive(row) || (other_view && !has(view.members, owner_of(table, row))))
      seen.still[row] = true;
  }
  if (seen.table == kViewTable && seen.generation == view.number) note_agreeing(table);
}

void RowWatch::compare(const TableCore& table, Seen& seen, std::size_t row) {
  const std::size_t words = seen.growth.size();
  // All members are one thread here, so nobody writes meanwhile. Most rows are as they were.
  if (std::memcmp(table.row(row), &seen.rows[row * words], words * kWordBytes) == 0) return;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t& before = seen.rows[row * words + i];
    const std::uint64_t now = word(table, row, i);
    if (now == before) continue;
    if (seen.still[row]) {
      complain(table, row, "change, and its owner is gone");
    } else if ((seen.growth[i] == Growth::number && now < before) ||
               (seen.growth[i] == Growth::bits && (before & ~now) != 0)) {
      complain(table, row, fmt::format("go back from {} to {} in word {}", before, now, i));
    }
    before = now;
  }
}

void RowWatch::complain(const TableCore& table, std::size_t row, const std::string& what) {
  if (!fault_.empty()) return;
  fault_ = fmt::format("{} saw the row of {} in table '{}' of view {} {}",
                       table.fabric().member_name(table.fabric().rank()), owner_of(table, row),
                       table.options().name, table.options().generation, what);
}

void RowWatch::note_agreeing(const TableCore& table) {
  const std::size_t me = table.my_row();
  agreeing_ = word(table, me, offset_of(table, "promised")) != 0 &&
              word(table, me, offset_of(table, "ended")) == 0;
}

}  // namespace dunlin::app::sim
