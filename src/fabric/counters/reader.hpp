#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/counters/counters.hpp"

namespace dunlin {

/// A counter in the memory of a process, as it was at one moment.
struct CounterView {
  std::uint64_t serial = 0;  // tells it from the process's other counters in that place
  std::string name = {};
  std::string labels = {};
  CounterKind kind = CounterKind::total;
  CounterUnit unit = CounterUnit::count;
  std::vector<std::uint64_t> words = {};

  /// The part of the name before the dot: "store" for "store.lock_waits".
  [[nodiscard]] std::string_view layer() const noexcept;
  /// The part of the name behind the dot: "lock_waits" for "store.lock_waits".
  [[nodiscard]] std::string_view short_name() const noexcept;
  /// The labels as keys and values.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> split_labels() const;
};

/// The counters on a page in any memory, in the order in which they were added. Records that make
/// no sense are left out. Nothing if the memory is no such page, or has another version.
[[nodiscard]] std::optional<std::vector<CounterView>> read_counters(
    std::span<const std::byte> memory);

}  // namespace dunlin
