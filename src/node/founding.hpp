#pragma once

#include <memory>

#include <dunlin/group.hpp>
#include <dunlin/node.hpp>

/// How a node comes into its group: it tries to join one that runs and, at the same time, to found
/// it with others. Whichever succeeds first counts.
namespace dunlin::node {

struct Founded {
  std::unique_ptr<Fabric> fabric;  // null: the group has its own
  std::unique_ptr<Group> group;    // destroyed before the fabric
};

/// Waits. Throws Error that says who is missing when the time is up.
[[nodiscard]] Founded found_or_join(const NodeOptions& options);

}  // namespace dunlin::node
