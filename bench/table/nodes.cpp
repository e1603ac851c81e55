#include "bench/table/nodes.hpp"

#include <dunlin/fabric/shm.hpp>

#include "bench/harness/join_many.hpp"
#include "group_name.hpp"

namespace dunlin::bench {

std::string fresh_group() { return app::fresh_group("bench"); }

std::unique_ptr<Fabric> join(const std::string& group, std::uint32_t members, std::uint32_t rank) {
  return shm::join({.group = group, .members = members, .rank = rank, .silence_timeout_ms = 0});
}

std::vector<std::unique_ptr<Fabric>> join_many(const std::string& group, std::uint32_t members,
                                               std::uint32_t first, std::uint32_t count) {
  return join_many(first, count, [&](Rank rank) { return join(group, members, rank); });
}

}  // namespace dunlin::bench
