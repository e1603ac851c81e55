#pragma once

#include <nanobind/nanobind.h>

#include "tables.hpp"

namespace dunlin::python {

namespace nb = nanobind;

/// The truth that a dunlin.conditions.Condition describes, as a function that needs no GIL. Throws
/// TypeError or ValueError for a column that the table lacks, or that has no numbers.
[[nodiscard]] TableTruth truth_of(const Layout& layout, nb::handle description);
/// The value of a dunlin.conditions.Value.
[[nodiscard]] std::function<long double(const TableCore& table)> value_of(const Layout& layout,
                                                                          nb::handle description);

}  // namespace dunlin::python
