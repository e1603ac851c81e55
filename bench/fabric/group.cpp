#include "bench/fabric/group.hpp"

#include <algorithm>

#include "bench/harness/join_many.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kJoinTimeoutOfHostsMs = 60'000;  // somebody starts them by hand

app::Cluster cluster_on(const RealNetwork& network, const Effort& effort) {
  app::FabricOptions options = effort.network;
  options.fabric = network.name;
  if (network.name == "shm") options = {.silence_timeout_s = options.silence_timeout_s};
  return app::Cluster(options);
}

}  // namespace

std::uint32_t processes_on(const app::Cluster& cluster) { return std::max(2U, cluster.hosts()); }

Group::Group(const RealNetwork& network, const Effort& effort, std::optional<std::uint32_t> members)
    : network_(network),
      cluster_(cluster_on(network, effort)),
      timeout_(effort.timeout),
      watch_(effort.watch),
      members_(members.value_or(processes_on(cluster_))),
      name_(cluster_.group("bench")) {}

TeamOptions Group::team(std::uint32_t processes) const {
  TeamOptions options{.processes = processes, .timeout = timeout_};
  if (cluster_.hosts() == 1) return options;
  options.timeout += std::chrono::milliseconds(kJoinTimeoutOfHostsMs);
  options.hosts = cluster_.hosts();
  options.host = cluster_.host();
  options.watch = watch_;
  options.exchange = [this, processes](std::uint32_t rank) {
    return exchange_on(cluster_.join({.group = name_ + "-meet",
                                      .members = processes,
                                      .rank = rank,
                                      .timeout_ms = kJoinTimeoutOfHostsMs,
                                      .silence_timeout_ms = 0}));
  };
  return options;
}

std::unique_ptr<Fabric> Group::join(Rank rank, std::uint32_t silence_timeout_ms) const {
  return cluster_.join({.group = name_,
                        .members = members_,
                        .rank = rank,
                        .silence_timeout_ms = silence_timeout_ms});
}

std::vector<std::unique_ptr<Fabric>> Group::join_many(Rank first, std::uint32_t count) const {
  return bench::join_many(first, count, [this](Rank rank) { return join(rank); });
}

std::string Group::address(const Fabric& fabric) const {
  const std::string text = description(fabric);
  for (const std::string_view before : {", address ", "tcp at ", "tcp, encrypted, at "}) {
    const std::size_t found = text.find(before);
    if (found == std::string::npos) continue;
    const std::size_t start = found + before.size();
    return text.substr(start, text.find_first_of(" ,;)", start) - start);
  }
  return {};
}

std::unique_ptr<Bare> Group::bare(Member& me, const Fabric* fabric) const {
  return network_.bare(me, fabric == nullptr ? std::string() : address(*fabric));
}

}  // namespace dunlin::bench
