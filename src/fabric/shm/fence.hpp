#pragma once

#include <sys/types.h>

#include "fabric/system.hpp"

namespace dunlin::shm {

/// A descriptor of the process of a peer: its number may be another's one day, this never is. None
/// if the process is this one or cannot be seen from here. A kernel before Linux 6.5 finds it by
/// its number, so the peer must be connected still.
[[nodiscard]] Descriptor process_behind(int connection, pid_t pid);

}  // namespace dunlin::shm
