#pragma once

#include <sys/types.h>

#include "fabric/system.hpp"

namespace dunlin::shm {

/// A descriptor of the peer's process: the number of that process may be another's one day, the
/// descriptor never is. None if the process is this one or cannot be seen from here. A kernel
/// before Linux 6.5 finds the process by its number, so the peer must still be connected.
[[nodiscard]] Descriptor process_behind(int connection, pid_t pid);

}  // namespace dunlin::shm
