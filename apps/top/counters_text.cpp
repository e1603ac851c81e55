#include "top/counters_text.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <fmt/format.h>

#include "top/format.hpp"

namespace dunlin::top {
namespace {

constexpr std::string_view kUnknown = "-";

/// "LOCK WAITS" for "lock_waits".
std::string heading_of(std::string_view name) {
  std::string heading(name);
  for (char& c : heading)
    c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return printable(heading);
}

/// What `is` says of the counter of that name, at any member that has it.
template <class Is>
bool any(const CounterBlock& block, const std::string& name, Is is) {
  return std::ranges::any_of(block.rows, [&](const CounterBlock::Row& row) {
    const auto found = row.counters.find(name);
    return found != row.counters.end() && is(*found->second);
  });
}

std::string cell_of(const CounterBlock::Row& row, const std::string& name) {
  const auto found = row.counters.find(name);
  if (found == row.counters.end()) return std::string(kUnknown);
  const MemberCounter& counter = *found->second;
  if (counter.view.kind == CounterKind::total && counter.per_s) return rate_text(counter.per_s);
  const std::uint64_t value = counter.view.words.front();
  if (value == SharedCounter::kUnknown) return std::string(kUnknown);
  return counter.view.unit == CounterUnit::nanoseconds ? duration_text(value) : count_text(value);
}

void print_block(std::vector<Line>& to, const Group& group, const CounterBlock& block,
                 const Page& page) {
  to.push_back({});
  to.push_back({shortened(printable(block.layer) + ":", page.width), Style::title});
  TextTable table;
  for (const std::string& key : block.keys) table.add_column(heading_of(key), Align::left);
  table.add_column("MEMBER", Align::left);
  table.pin();
  std::vector<std::string> names;
  for (const std::string& name : block.names) {
    const bool grows = any(block, name, [](const MemberCounter& counter) {
      return counter.view.kind != CounterKind::level;
    });
    const bool counts = any(
        block, name, [](const MemberCounter& counter) { return counter.view.words.front() != 0; });
    if (grows && !counts) continue;
    names.push_back(name);
    const bool has_rate = any(block, name, [](const MemberCounter& counter) {
      return counter.view.kind == CounterKind::total && counter.per_s;
    });
    table.add_column(heading_of(name) + (has_rate ? "/s" : ""), Align::right);
  }
  std::vector<const Reckoned*> ratios;
  for (const Reckoned& ratio : reckoned()) {
    if (ratio.layer != block.layer) continue;
    ratios.push_back(&ratio);
    table.add_column(heading_of(ratio.name), Align::right);
  }
  for (const CounterBlock::Row& row : block.rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.any->view.split_labels()) cells.push_back(printable(value));
    cells.push_back(printable(group.name_of(row.any->rank)));
    for (const std::string& name : names) cells.push_back(cell_of(row, name));
    for (const Reckoned* const ratio : ratios) {
      const std::optional<double> value = ratio->value(row);
      cells.push_back(value ? fmt::format("{:.1f}", *value) : std::string(kUnknown));
    }
    table.add_row(std::move(cells));
  }
  table.print(to, page);
}

void print_locks(std::vector<Line>& to, const Group& group, const Page& page) {
  for (const LockSample& lock : locks_of(group.counters)) {
    std::string text = fmt::format("  space {}: lock at {} + {}: ", printable(lock.space),
                                   printable(group.name_of(lock.home)), lock.offset);
    text += lock.holder ? "held by " + printable(group.name_of(*lock.holder)) : "held elsewhere";
    for (std::size_t i = 0; i < lock.waiters.size(); ++i)
      text += (i == 0 ? "; waiting: " : ", ") + printable(group.name_of(lock.waiters[i]));
    to.push_back({shortened(std::move(text), page.width)});
  }
}

}  // namespace

void print_counters(std::vector<Line>& to, const Group& group, const Page& page) {
  for (const CounterBlock& block : blocks_of(group.counters)) {
    if (block.layer == "multicast" && !page.raw) continue;  // shown in an operator's terms
    print_block(to, group, block, page);
    if (block.layer == "segment") print_locks(to, group, page);
  }
}

std::vector<std::string> counted_objects(const Group& group) {
  std::vector<std::string> objects;
  for (const CounterBlock& block : blocks_of(group.counters)) {
    if (block.layer == "multicast") continue;  // a table has that name
    for (const CounterBlock::Row& row : block.rows) {
      const auto labels = row.any->view.split_labels();
      if (labels.empty()) continue;
      std::string object = printable(labels.front().first) + " " + printable(labels.front().second);
      if (std::ranges::find(objects, object) == objects.end()) objects.push_back(std::move(object));
    }
  }
  return objects;
}

}  // namespace dunlin::top
