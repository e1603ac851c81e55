#include "team/cores.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include <sched.h>

#include <dunlin/error.hpp>

namespace dunlin::app {
std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw Error(std::string("cannot tell which cores may be used: ") + strerror(errno));
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to(int core) { use_all({core}); }

void use_all(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Error("cannot stay on core " + std::to_string(cores.front()) + ": " + strerror(errno));
  }
}

std::uint64_t cpu_time_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace dunlin::app
