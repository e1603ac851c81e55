#pragma once

#include <cstdint>
#include <vector>

#include "top/sample.hpp"
#include "top/selection.hpp"

namespace dunlin::top {

/// Looks at this host: maps what we may read, takes a sample of what is selected, and lets go.
[[nodiscard]] Sample observe(const Selection& selection);
/// Observes, but throws as check() does if nothing of the selection is there.
[[nodiscard]] Sample observe_checked(const Selection& selection);

}  // namespace dunlin::top
