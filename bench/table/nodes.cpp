#include "bench/table/nodes.hpp"

#include <algorithm>

#include <dunlin/join.hpp>
#include <dunlin/limits.hpp>

#include "bench/harness/join_many.hpp"
#include "group_name.hpp"

namespace dunlin::bench {

std::string fresh_group() { return app::fresh_group("bench"); }

/// Its end is the random part.
std::string fresh_joinable_group() {
  const std::string name = fresh_group();
  return name.substr(name.size() - std::min(name.size(), kMaxJoinableGroupNameBytes));
}

std::unique_ptr<Fabric> join(const std::string& group, std::uint32_t members, std::uint32_t rank) {
  return dunlin::join({.group = group, .members = members, .rank = rank, .silence_timeout_ms = 0});
}

std::vector<std::unique_ptr<Fabric>> join_many(const std::string& group, std::uint32_t members,
                                               std::uint32_t first, std::uint32_t count) {
  return join_many(first, count, [&](Rank rank) { return join(group, members, rank); });
}

}  // namespace dunlin::bench
