#pragma once

#include <cstdint>

#include <sched.h>

namespace dunlin {

/// How many processors this thread may use.
[[nodiscard]] inline std::uint32_t usable_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

}  // namespace dunlin
