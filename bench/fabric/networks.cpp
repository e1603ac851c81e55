#include "bench/fabric/networks.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include <dunlin/fabric/ofi.hpp>
#include <dunlin/fabric/shm.hpp>

namespace dunlin::bench {
namespace {

RealNetwork shared_memory() {
  return {.name = "shm",
          .join =
              [](const std::string& group, std::uint32_t members, std::uint32_t rank) {
                return shm::join(
                    {.group = group, .members = members, .rank = rank, .silence_timeout_ms = 0});
              },
          .bare = bare_memory,
          .passive_target = true,
          .trips_per_batch = 200};
}

/// All members are ours, on this host: its name is secret enough for the group.
RealNetwork tcp_by_libfabric() {
  return {
      .name = "ofi",
      .join =
          [](const std::string& group, std::uint32_t members, std::uint32_t rank) {
            return ofi::join({.group = group,
                              .members = members,
                              .rank = rank,
                              .silence_timeout_ms = 0,
                              .meeting = "unix:" + group,
                              .secret = "secret of " + group,
                              .provider = "tcp"});
          },
      .bare = bare_tcp,
      .passive_target = false,
      .trips_per_batch = 10,
      .goals = {
          .detection_ratio = 1.3, .puts_per_s = 1e7, .stream_ratio = 0.8, .sleeping_ratio = 1.3}};
}

bool libfabric_has_tcp() {
  const std::vector<std::string> networks = ofi::networks();
  return std::ranges::any_of(networks, [](const auto& name) { return name.starts_with("tcp:"); });
}

std::vector<RealNetwork> find_networks() {
  std::vector<RealNetwork> found{shared_memory()};
  if (libfabric_has_tcp()) found.push_back(tcp_by_libfabric());
  return found;
}

}  // namespace

const std::vector<RealNetwork>& real_networks() {
  static const std::vector<RealNetwork> networks = find_networks();
  return networks;
}

std::vector<std::unique_ptr<Fabric>> join_many(const RealNetwork& network, const std::string& group,
                                               std::uint32_t members, std::uint32_t first,
                                               std::uint32_t count) {
  std::vector<std::unique_ptr<Fabric>> fabrics(count);
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          fabrics[i] = network.join(group, members, first + i);
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

}  // namespace dunlin::bench
