#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dunlin/table/layout.hpp>

#include "top/counter.hpp"
#include "top/counters.hpp"
#include "top/value.hpp"

/// What members of a multicast count, and how far they are by the rows of its table
/// (src/multicast/row.hpp).
namespace dunlin::top {

/// What one member counts in the view at hand, in its own memory.
struct MulticastSample {
  Counter messages = {};  // delivered
  Counter bytes = {};
  Counter batches = {};  // deliveries, each of some messages
  Counter nulls = {};
  Counter no_room = {};                          // how often this member had no room to send
  Counter no_room_ns = {};                       // how long it had none
  std::optional<std::uint64_t> latency_ns = {};  // time that the last timed own message took
  std::uint64_t progress = 0;                    // messages received; durable: on the disk

  void compare(const MulticastSample& before, double seconds);
  /// Since the look before; nothing if no batch was delivered since.
  [[nodiscard]] std::optional<double> messages_per_batch() const;
  [[nodiscard]] std::optional<double> no_room_percent() const;
};

/// The subgroup's name if a table of this name and layout is one of a multicast.
[[nodiscard]] std::optional<std::string_view> multicast_of(std::string_view table,
                                                           const Layout& layout);
/// `counters`: of the multicast at one member; `values`: of the member's row, by column.
[[nodiscard]] MulticastSample read_multicast(std::span<const CounterView* const> counters,
                                             const Layout& layout,
                                             const std::vector<ColumnValues>& values);

}  // namespace dunlin::top
