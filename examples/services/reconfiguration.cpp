// Reconfiguration: servers work for sites, and balancers move them to where the load is. A balancer
// locks the server that it moves, so two never move the same one; if it is killed in the middle,
// the next balancer that locks this server sees so, and ends the move. Rank 0 holds all segments,
// and takes commands: `load SITE FIGURE`, `show`. The others are balancers; one with a number dies
// in the middle of its so-many-th move:
//
//     ./reconfiguration rack7 3 0 & ./reconfiguration rack7 3 1 & ./reconfiguration rack7 3 2 5

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

constexpr std::uint64_t kServers = 12;
constexpr std::uint64_t kSites = 3;

struct Server {
  std::uint64_t site = 0;
  std::uint64_t target = 0;  // another one while it moves
  std::uint64_t moves = 0;
};

std::string server_name(std::uint64_t server) { return "server/" + std::to_string(server); }
std::string site_name(std::uint64_t site) { return "site/" + std::to_string(site); }

/// What all know: where the servers work, and how much work each site has.
class Cluster {
 public:
  explicit Cluster(Member& member) : member_(member) {
    for (std::uint64_t i = 0; i < kServers; ++i) servers_.push_back(member.find(server_name(i)));
    for (std::uint64_t i = 0; i < kSites; ++i) sites_.push_back(member.find(site_name(i)));
  }

  [[nodiscard]] Server server(std::uint64_t which) {
    Server server;
    demand(member_.space.get(servers_.at(which), dunlin::bytes_of(server)));
    return server;
  }
  void set_server(std::uint64_t which, Server server) {
    demand(member_.space.put(servers_.at(which), dunlin::bytes_of(server)));
  }
  [[nodiscard]] std::uint64_t load(std::uint64_t site) {
    std::uint64_t load = 0;
    demand(member_.space.get(sites_.at(site), dunlin::bytes_of(load)));
    return load;
  }
  void set_load(std::uint64_t site, std::uint64_t load) {
    demand(member_.space.put(sites_.at(site), dunlin::bytes_of(load)));
  }
  [[nodiscard]] dunlin::Key key(std::uint64_t server) const { return servers_.at(server); }

 private:
  Member& member_;
  std::vector<dunlin::Key> servers_;
  std::vector<dunlin::Key> sites_;
};

class Balancer {
 public:
  Balancer(Member& member, std::uint64_t dies_in_move)
      : member_(member), cluster_(member), dies_in_move_(dies_in_move) {}

  /// Moves one server from the site with the least work for each to the one with the most.
  void balance() {
    std::array<double, kSites> servers{};
    for (std::uint64_t i = 0; i < kServers; ++i) {
      const Server server = cluster_.server(i);
      if (server.site != server.target && !end_move(i)) return;
      servers.at(server.target) += 1;
    }
    std::uint64_t from = 0, to = 0;
    std::array<double, kSites> work{};
    for (std::uint64_t site = 0; site < kSites; ++site) {
      work.at(site) = static_cast<double>(cluster_.load(site)) / std::max(servers.at(site), 0.5);
      if (work.at(site) < work.at(from)) from = site;
      if (work.at(site) > work.at(to)) to = site;
    }
    // Only if the site that gives a server still has less work for each than the other had.
    if (servers.at(from) < 2) return;
    const double after = static_cast<double>(cluster_.load(from)) / (servers.at(from) - 1);
    if (after < work.at(to)) move_one(from, to);
  }

 private:
  void move_one(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = 0; i < kServers; ++i) {
      if (cluster_.server(i).site != from) continue;
      auto lock = member_.space.try_lock(cluster_.key(i));
      if (!lock.outcome().ok()) continue;  // another balancer is at it
      Server server = cluster_.server(i);
      const bool still_there = server.site == from && server.target == from;
      if (still_there) move(i, server, to);
      demand(member_.space.unlock(cluster_.key(i)));
      if (still_there) return;
    }
  }
  /// Under the lock. It takes two puts, between which the server would be told to stop the one and
  /// start the other.
  void move(std::uint64_t which, Server server, std::uint64_t to) {
    server.target = to;
    cluster_.set_server(which, server);
    if (++moves_ == dies_in_move_) {
      std::cout << "dies while it moves server " << which << std::endl;
      raise(SIGKILL);
    }
    finish(which, server);
  }
  void finish(std::uint64_t which, Server server) {
    const std::uint64_t from = std::exchange(server.site, server.target);
    ++server.moves;
    cluster_.set_server(which, server);
    std::cout << "move " << server.moves << " of server " << which << ": " << from << " to "
              << server.site << std::endl;
  }
  /// A move under way was seen. The process that gets the lock then ends it, if that is still
  /// needed.
  bool end_move(std::uint64_t which) {
    auto lock = member_.space.lock(cluster_.key(which));
    const dunlin::Outcome locked = lock.outcome();
    if (!locked.ok()) throw dunlin::Error(lock.describe());
    const Server server = cluster_.server(which);
    if (server.site != server.target) {
      std::cout << "ends the move of server " << which
                << (locked.recovered ? ", whose balancer died" : "") << std::endl;
      finish(which, server);
    }
    demand(member_.space.unlock(cluster_.key(which)));
    return true;
  }

  Member& member_;
  Cluster cluster_;
  std::uint64_t dies_in_move_;
  std::uint64_t moves_ = 0;
};

void show(Cluster& cluster) {
  std::array<std::uint64_t, kSites> owned{};
  std::uint64_t moving = 0, moves = 0;
  for (std::uint64_t i = 0; i < kServers; ++i) {
    const Server server = cluster.server(i);
    ++owned.at(server.site);
    moving += server.site == server.target ? 0 : 1;
    moves += server.moves;
  }
  for (const std::uint64_t servers : owned) std::cout << servers << ' ';
  std::cout << "servers, " << moving << " moving, " << moves << " moves" << std::endl;
}

/// Holds the segments, and does what it is told.
void serve(Member& member) {
  for (std::uint64_t i = 0; i < kServers; ++i) {
    const dunlin::Key key = member.allocate({.bytes = sizeof(Server),
                                             .coherence = dunlin::Coherence::strict,
                                             .placement = dunlin::Placement::here(),
                                             .name = server_name(i)});
    Server server{.site = i % kSites, .target = i % kSites};
    demand(member.space.put(key, dunlin::bytes_of(server)));
  }
  // Two balancers must not act on the same figure at once: so read coherence.
  for (std::uint64_t i = 0; i < kSites; ++i)
    member.allocate({.bytes = 8,
                     .coherence = dunlin::Coherence::read,
                     .placement = dunlin::Placement::here(),
                     .name = site_name(i)});
  Cluster cluster(member);
  TypedLines input;
  while (!input.over()) {
    member.rest(5);
    const std::string* line = input.front();
    if (line == nullptr) continue;
    std::istringstream words(*line);
    std::string verb;
    std::uint64_t site = 0, load = 0;
    words >> verb >> site >> load;
    if (verb == "load" && site < kSites) cluster.set_load(site, load);
    if (verb == "show") show(cluster);
    input.pop();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw dunlin::Error("usage: reconfiguration GROUP MEMBERS RANK [MOVE]");
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::atoi(argv[i])); };
  Member member(argv[1], number(2), number(3));
  if (member.fabric->rank() == 0) {
    serve(member);
    member.leave();
    return 0;
  }
  Balancer balancer(member, argc > 4 ? number(4) : 0);
  TypedLines input;
  while (!input.over() && member.alive(0)) {
    balancer.balance();
    member.rest(1);
    if (input.front() != nullptr) input.pop();
  }
  member.leave();
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
