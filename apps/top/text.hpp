#pragma once

#include <vector>

#include "top/sample.hpp"
#include "top/text_table.hpp"

namespace dunlin::top {

/// A group with its members, tables, rows and predicates.
[[nodiscard]] std::vector<Line> describe_group(const Sample& sample, const Group& group,
                                               const Page& page);
/// All groups: their members, and the names of their tables.
[[nodiscard]] std::vector<Line> describe_groups(const Sample& sample, const Page& page);
/// The group if there is just one, otherwise all in short; and the remarks.
[[nodiscard]] std::vector<Line> describe(const Sample& sample, const Page& page);

}  // namespace dunlin::top
