#include "bench/table/network.hpp"

#include <exception>
#include <thread>

namespace dunlin::bench {
namespace {

app::Cluster cluster_on(const std::string& fabric, const Effort& effort) {
  app::FabricOptions options = effort.network;
  options.fabric = fabric;
  if (!options.silence_timeout_s) options.silence_timeout_s = 0;
  return app::Cluster(options);
}

}  // namespace

NetworkGroup::NetworkGroup(const std::string& fabric, const Effort& effort, std::uint32_t members)
    : cluster_(cluster_on(fabric, effort)),
      group_(cluster_.group("bench")),
      members_(members),
      bare_(bare_tcp()) {}

std::unique_ptr<Fabric> NetworkGroup::join(Rank rank) const {
  return cluster_.join({.group = group_, .members = members_, .rank = rank});
}

std::vector<std::unique_ptr<Fabric>> NetworkGroup::join_many(Rank first,
                                                             std::uint32_t count) const {
  std::vector<std::unique_ptr<Fabric>> fabrics(count);
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          fabrics[i] = join(first + i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return fabrics;
}

std::string NetworkGroup::description(const std::string& fabric, const Effort& effort) {
  const NetworkGroup group(fabric, effort, 1);
  return group.cluster_.describe(*group.join(0));
}

}  // namespace dunlin::bench
