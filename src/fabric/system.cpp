#include "fabric/system.hpp"

#include <filesystem>

#include <sys/resource.h>

namespace dunlin {
namespace {

/// None where there is no /proc.
std::size_t open_descriptors() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++count;
  return count;
}

}  // namespace

void ensure_descriptors(std::uint64_t more, std::uint32_t members) {
  const std::size_t in_use = open_descriptors();
  const std::uint64_t needed = in_use + more;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed)
    throw Error("a group of " + std::to_string(members) + " members needs up to " +
                std::to_string(needed) + " file descriptors, with the " + std::to_string(in_use) +
                " that are in use, and this process may have only " +
                std::to_string(limit.rlim_max) + ": raise the hard limit (ulimit -Hn)");
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw Error("raising the limit of file descriptors to " + std::to_string(needed) +
                " failed: " + error_text(errno));
}

}  // namespace dunlin
