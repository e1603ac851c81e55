#include "team/team_group.hpp"

#include <utility>

namespace dunlin::app {
namespace {

constexpr std::uint32_t kJoinTimeoutOfHostsMs = 60'000;  // somebody starts them by hand

}  // namespace

TeamGroup::TeamGroup(Cluster cluster, TeamGroupOptions options)
    : cluster_(std::move(cluster)),
      options_(std::move(options)),
      name_(cluster_.group(options_.name)) {
  if (options_.members == 0) options_.members = team().processes;
}

TeamOptions TeamGroup::team(std::uint32_t processes) const {
  TeamOptions options{.processes = processes, .timeout = options_.timeout};
  if (cluster_.hosts() == 1) return options;
  options.timeout += std::chrono::milliseconds(kJoinTimeoutOfHostsMs);
  options.hosts = cluster_.hosts();
  options.host = cluster_.host();
  options.watch = options_.watch;
  options.exchange = [this, processes](std::uint32_t rank) {
    return exchange_on(cluster_.join({.group = name_ + "-meet",
                                      .members = processes,
                                      .rank = rank,
                                      .timeout_ms = kJoinTimeoutOfHostsMs,
                                      .silence_timeout_ms = 0}));
  };
  return options;
}

std::unique_ptr<Fabric> TeamGroup::join(Rank rank, std::uint32_t silence_timeout_ms) const {
  return cluster_.join({.group = name_,
                        .members = options_.members,
                        .rank = rank,
                        .silence_timeout_ms = silence_timeout_ms});
}

}  // namespace dunlin::app
