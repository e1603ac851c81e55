#pragma once

#include <vector>

#include "top/sample.hpp"
#include "top/text_table.hpp"

namespace dunlin::top {

/// A table for each layer and kind of object, and the locks of segments. What only grows and is 0
/// at all members is left out. A total that has no rate yet is shown as it is.
void print_counters(std::vector<Line>& to, const Group& group, const Page& page);
/// The objects that have counters: "store blocks", say.
[[nodiscard]] std::vector<std::string> counted_objects(const Group& group);

}  // namespace dunlin::top
