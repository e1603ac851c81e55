#pragma once

#include <string>

#include <dunlin/group.hpp>

#include "signals.hpp"

namespace dunlin::app::cast {

/// Asks the group to let this member go, and polls until it has. A member that ends without this
/// counts as failed: the others wait for it, and may end its process. Throws Error if a signal
/// comes meanwhile, or if the others do not let it go in time.
void leave(Group& group, const std::string& name, SignalGuard& signals);

}  // namespace dunlin::app::cast
