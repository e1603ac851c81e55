#include "bench/fabric/networks.hpp"

#include <algorithm>

#include <dunlin/error.hpp>

#include "cluster/cluster.hpp"

namespace dunlin::bench {
namespace {

RealNetwork shared_memory() {
  return {.name = "shm",
          .bare = bare_memory,
          .bare_name = "bare shared memory",
          .passive_target = true,
          .trips_per_batch = 200};
}

/// Each goal is what docs/benchmarks.md explains.
RealNetwork sockets() {
  return {.name = "tcp",
          .bare = bare_tcp,
          .bare_name = "bare TCP",
          .passive_target = false,
          .trips_per_batch = 10,
          .both_ways = true,
          .goals = {.detection_ratio = 1.1,
                    .puts_per_s = 2.5e7,
                    .get_ratio = 1.1,
                    .stream_ratio = 0.8,
                    .filled_ratio = 0.8,
                    .sleeping_ratio = 1.1,
                    .cast_100_ratio = 0.4,
                    .cast_10k_ratio = 0.6,
                    .own_delivery_ratio = 2.3}};
}

RealNetwork libfabric() {
  return {
      .name = "ofi",
      .bare = bare_tcp,
      .bare_name = "bare TCP",
      .passive_target = false,
      .trips_per_batch = 10,
      .both_ways = true,
      .goals = {
          .detection_ratio = 1.3, .puts_per_s = 1e7, .stream_ratio = 0.8, .sleeping_ratio = 1.3}};
}

/// Some of its operations need the target's processor, depending on the device.
RealNetwork rdma_devices() {
  return {.name = "verbs",
          .bare = bare_verbs,
          .bare_name = "bare libibverbs",
          .passive_target = false,
          .trips_per_batch = 10,
          .goals = {.detection_ratio = 1.15}};
}

bool libfabric_has_tcp() {
  const std::vector<std::string> networks = app::networks_of("ofi");
  return std::ranges::any_of(networks, [](const auto& line) { return line.starts_with("tcp: "); });
}

std::vector<RealNetwork> find_networks() {
  std::vector<RealNetwork> found{shared_memory()};
  if (DUNLIN_HAS_TCP != 0) found.push_back(sockets());
  if (libfabric_has_tcp()) found.push_back(libfabric());
  if (DUNLIN_HAS_VERBS != 0 && !app::networks_of("verbs").empty()) found.push_back(rdma_devices());
  return found;
}

}  // namespace

const std::vector<RealNetwork>& real_networks() {
  static const std::vector<RealNetwork> networks = find_networks();
  return networks;
}

const RealNetwork& real_network(std::string_view name) {
  const auto found = std::ranges::find(real_networks(), name, &RealNetwork::name);
  if (found == real_networks().end())
    throw Error("bench: there is no network " + std::string(name));
  return *found;
}

}  // namespace dunlin::bench
