#include "top/multicast.hpp"

#include <algorithm>
#include <array>
#include <variant>

namespace dunlin::top {
namespace {

constexpr std::string_view kPrefix = "cast:";
constexpr std::array<std::string_view, 2> kNeeded{"real", "sent"};

const Column* find(const Layout& layout, std::string_view name) {
  const auto found = std::find_if(layout.columns.begin(), layout.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == layout.columns.end() ? nullptr : &*found;
}

/// The sum of a column's entries; nothing if there is no such column of numbers.
std::optional<std::uint64_t> sum(const Layout& layout, const std::vector<ColumnValues>& values,
                                 std::string_view name) {
  const Column* const column = find(layout, name);
  if (column == nullptr) return std::nullopt;
  const auto index = static_cast<std::size_t>(column - layout.columns.data());
  if (index >= values.size()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const Value& value : values[index].entries) {
    const auto* const number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr) return std::nullopt;
    sum += *number;
  }
  return sum;
}

}  // namespace

void MulticastSample::compare(const MulticastSample& before, double seconds) {
  messages.compare(before.messages.total, seconds);
  bytes.compare(before.bytes.total, seconds);
  batches.compare(before.batches.total, seconds);
  nulls.compare(before.nulls.total, seconds);
  no_room.compare(before.no_room.total, seconds);
  no_room_ns.compare(before.no_room_ns.total, seconds);
}

std::optional<double> MulticastSample::messages_per_batch() const {
  if (!messages.per_s || !batches.per_s || *batches.per_s <= 0) return std::nullopt;
  return *messages.per_s / *batches.per_s;
}

std::optional<double> MulticastSample::no_room_percent() const {
  constexpr double kNsPerPercent = 1e9 / 100;
  if (!no_room_ns.per_s) return std::nullopt;
  return std::min(*no_room_ns.per_s / kNsPerPercent, 100.0);  // the two looks take time, too
}

std::optional<std::string_view> multicast_of(std::string_view table, const Layout& layout) {
  const bool needed = std::all_of(kNeeded.begin(), kNeeded.end(), [&](std::string_view name) {
    return find(layout, name) != nullptr;
  });
  if (!table.starts_with(kPrefix) || !needed) return std::nullopt;
  return table.substr(kPrefix.size());
}

MulticastSample read_multicast(std::span<const CounterView* const> counters, const Layout& layout,
                               const std::vector<ColumnValues>& values) {
  MulticastSample sample;
  std::uint64_t timed = 0, own_ns = 0;
  for (const CounterView* const counter : counters) {
    for (const auto& [name, to] : {std::pair{"messages", &sample.messages.total},
                                   {"bytes", &sample.bytes.total},
                                   {"deliver_batches", &sample.batches.total},
                                   {"nulls", &sample.nulls.total},
                                   {"no_room", &sample.no_room.total},
                                   {"no_room_ns", &sample.no_room_ns.total},
                                   {"own_ns", &own_ns},
                                   {"own_timed", &timed}})
      if (counter->short_name() == name) *to = counter->words.front();
  }
  if (timed > 0) sample.latency_ns = own_ns;
  for (const std::string_view name : {"persisted", "received", "consumed"}) {  // by mode
    if (const auto progress = sum(layout, values, name)) {
      sample.progress = *progress;
      break;
    }
  }
  return sample;
}

}  // namespace dunlin::top
