#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "top/sample.hpp"

namespace dunlin::top {

/// The description that a table's region has in its header's text (docs/formats/row.md).
struct TableDescription {
  Layout layout;
  std::vector<Rank> ranks;
  Refresh refresh = Refresh::writes;
};
/// Nothing if the text describes no table; then it is some other region.
[[nodiscard]] std::optional<TableDescription> parse_description(std::string_view text);

/// All tables of which these segments, of one group, are parts.
[[nodiscard]] std::vector<Table> read_tables(std::span<const Segment* const> segments,
                                             const CounterIndex& counters, std::uint64_t now_ns,
                                             std::vector<std::string>& remarks);

}  // namespace dunlin::top
