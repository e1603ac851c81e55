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
  std::uint64_t serial = 0;  // tells it from others of its process that had its place
  std::string name = {};
  std::string labels = {};
  CounterKind kind = CounterKind::total;
  CounterUnit unit = CounterUnit::count;
  std::vector<std::uint64_t> words = {};

  /// "store" of "store.lock_waits".
  [[nodiscard]] std::string_view layer() const noexcept;
  /// "lock_waits" of it.
  [[nodiscard]] std::string_view short_name() const noexcept;
  /// Keys and values.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> split_labels() const;
};

struct CounterPageView {
  std::vector<CounterView> counters = {};  // in the order in which they were added
  std::size_t damaged = 0;                 // records that make no sense, which are left out
};
/// A page in any memory. Nothing if that is no such page, or of another version.
[[nodiscard]] std::optional<CounterPageView> read_counters(std::span<const std::byte> memory);

}  // namespace dunlin
