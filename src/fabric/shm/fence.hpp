#pragma once

#include <sys/types.h>

#include "fabric/system.hpp"

namespace dunlin::shm {

/// A descriptor of the process of a peer that is connected: its number may be another's one day,
/// this never is. None if the process is this one or cannot be seen from here.
[[nodiscard]] Descriptor descriptor_of(pid_t pid);

}  // namespace dunlin::shm
