#include "fabric/system.hpp"

#include <filesystem>

#include <sys/resource.h>

namespace dunlin {
namespace {

/// How many descriptors are open; none where there is no /proc.
std::size_t open_descriptors() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++count;
  return count;
}

}  // namespace

void ensure_descriptors(std::uint64_t needed, std::uint64_t wanted, std::uint32_t members) {
  const std::size_t in_use = open_descriptors();
  needed += in_use;
  wanted += in_use;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < needed)
    throw Error("a group of " + std::to_string(members) +
                (members == 1 ? " member needs " : " members needs ") + std::to_string(needed) +
                " file descriptors, with the " + std::to_string(in_use) +
                " that are in use, and this process may have only " +
                std::to_string(limit.rlim_max) + ": raise the hard limit (ulimit -Hn)");
  limit.rlim_cur = std::min<std::uint64_t>(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw Error("raising the limit of file descriptors to " + std::to_string(limit.rlim_cur) +
                " failed: " + error_text(errno));
}

}  // namespace dunlin
