#include <dunlin/join.hpp>

#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {

std::vector<Backend> shm_backends() {
  Backend threads{.variant = "threads"};
  threads.join = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    // Silence is not counted: a test polls when it likes, on a machine that has other work.
    return join({.group = group, .members = nodes, .rank = rank, .silence_timeout_ms = 0});
  };
  threads.begin = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return begin_join({.group = group,
                       .members = nodes,
                       .rank = rank,
                       .timeout_ms = 60'000,
                       .silence_timeout_ms = 0});
  };
  threads.start = [threads](std::uint32_t nodes) { return start_real_group(threads, nodes); };
  return {threads};
}

DUNLIN_CONFORMANCE(Shm, shm_backends);
DUNLIN_CONFORMANCE_SUITE(Shm, Forming, shm_backends);

}  // namespace dunlin::conformance
