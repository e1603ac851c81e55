#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outcome.hpp"

/// Servers work for sites, and balancers move them to where the load is. A balancer locks the
/// server that it moves, so two never move the same one; if it dies in the middle, the next
/// balancer that locks this server sees so, and ends the move.
namespace services {

struct Server {
  std::uint64_t site = 0;
  std::uint64_t target = 0;  // another one while it moves
  std::uint64_t moves = 0;
};

[[nodiscard]] inline dunlin::SegmentSpec server_segment(std::uint64_t server) {
  return {.bytes = sizeof(Server),
          .coherence = dunlin::Coherence::strict,
          .placement = dunlin::Placement::here(),
          .name = "server/" + std::to_string(server)};
}
/// Two balancers must not act on the same figure at once: so read coherence.
[[nodiscard]] inline dunlin::SegmentSpec load_segment(std::uint64_t site) {
  return {.bytes = sizeof(std::uint64_t),
          .coherence = dunlin::Coherence::read,
          .placement = dunlin::Placement::here(),
          .name = "site/" + std::to_string(site)};
}

/// Where all is: a Server for each server, and the load of each site.
struct Cluster {
  std::vector<dunlin::Key> servers;
  std::vector<dunlin::Key> sites;
};

struct Move {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

/// From the site with the least work for each of its servers to the one with the most, if the
/// former then still has less work for each than the latter had.
[[nodiscard]] inline std::optional<Move> plan(const std::vector<double>& loads,
                                              const std::vector<double>& servers) {
  Move move;
  const auto work = [&](std::uint64_t site) {
    return loads[site] / (servers[site] > 0 ? servers[site] : 0.5);
  };
  for (std::uint64_t site = 0; site < loads.size(); ++site) {
    if (work(site) < work(move.from)) move.from = site;
    if (work(site) > work(move.to)) move.to = site;
  }
  if (servers[move.from] < 2) return std::nullopt;
  const double after = loads[move.from] / (servers[move.from] - 1);
  return after < work(move.to) ? std::optional(move) : std::nullopt;
}

class Balancer {
 public:
  /// What the balancer tells, each under the server's lock.
  struct Events {
    std::function<void(std::uint64_t server)> half_moved = [](std::uint64_t) {};
    std::function<void(std::uint64_t server, std::uint64_t from, const Server& now)> moved =
        [](std::uint64_t, std::uint64_t, const Server&) {};
    std::function<void(std::uint64_t server, bool its_balancer_died)> taken_over = [](std::uint64_t,
                                                                                      bool) {};
  };

  Balancer(dunlin::SegmentSpace& space, Cluster cluster) : Balancer(space, cluster, Events{}) {}
  Balancer(dunlin::SegmentSpace& space, Cluster cluster, Events events)
      : space_(space), cluster_(std::move(cluster)), events_(std::move(events)) {}

  /// Looks at all servers and sites, and moves one server if that is better.
  dunlin::remote::Job balance() {
    std::vector<double> servers(cluster_.sites.size()), loads(cluster_.sites.size());
    for (std::uint64_t i = 0; i < cluster_.servers.size(); ++i) {
      Server server;
      demand(co_await space_.get(cluster_.servers[i], dunlin::bytes_of(server)));
      if (server.site != server.target) co_await end_move(i);
      servers.at(server.target) += 1;
    }
    for (std::uint64_t i = 0; i < cluster_.sites.size(); ++i) {
      std::uint64_t load = 0;
      demand(co_await space_.get(cluster_.sites[i], dunlin::bytes_of(load)));
      loads[i] = static_cast<double>(load);
    }
    const std::optional<Move> move = plan(loads, servers);
    if (move) co_await move_one(*move);
  }

  [[nodiscard]] std::uint64_t moves() const noexcept { return moves_; }
  /// Of all moves together, from the first try to lock the server until its lock is given back.
  [[nodiscard]] std::uint64_t moving_ns() const noexcept { return moving_ns_; }

 private:
  dunlin::remote::Job move_one(Move move) {
    for (std::uint64_t i = 0; i < cluster_.servers.size(); ++i) {
      Server server;
      demand(co_await space_.get(cluster_.servers[i], dunlin::bytes_of(server)));
      if (server.site != move.from) continue;
      const std::uint64_t begin_ns = space_.fabric().now_ns();
      const dunlin::Outcome locked = co_await space_.try_lock(cluster_.servers[i]);
      if (!locked.ok()) continue;  // another balancer is at it
      demand(co_await space_.get(cluster_.servers[i], dunlin::bytes_of(server)));
      const bool still_there = server.site == move.from && server.target == move.from;
      if (still_there) {
        // It takes two puts, between which the server would be told to stop the one and start the
        // other.
        server.target = move.to;
        demand(co_await space_.put(cluster_.servers[i], dunlin::bytes_of(server)));
        events_.half_moved(i);
        co_await finish(i, server);
      }
      demand(co_await space_.unlock(cluster_.servers[i]));
      if (!still_there) continue;
      ++moves_;
      moving_ns_ += space_.fabric().now_ns() - begin_ns;
      co_return;
    }
  }
  dunlin::remote::Job finish(std::uint64_t which, Server server) {
    const std::uint64_t from = std::exchange(server.site, server.target);
    ++server.moves;
    demand(co_await space_.put(cluster_.servers[which], dunlin::bytes_of(server)));
    events_.moved(which, from, server);
  }
  /// A move under way was seen. The process that gets the lock then ends it, if that is still
  /// needed.
  dunlin::remote::Job end_move(std::uint64_t which) {
    const dunlin::Outcome locked = co_await space_.lock(cluster_.servers[which]);
    demand(locked);
    Server server;
    demand(co_await space_.get(cluster_.servers[which], dunlin::bytes_of(server)));
    if (server.site != server.target) {
      events_.taken_over(which, locked.recovered);
      co_await finish(which, server);
    }
    demand(co_await space_.unlock(cluster_.servers[which]));
  }

  dunlin::SegmentSpace& space_;
  Cluster cluster_;
  Events events_;
  std::uint64_t moves_ = 0;
  std::uint64_t moving_ns_ = 0;
};

}  // namespace services
