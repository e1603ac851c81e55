// Reconfiguration: servers work for sites, and balancers move them to where the load is
// (reconfiguration.hpp). Rank 0 holds all segments, and takes commands: `load SITE FIGURE`, `show`.
// The others are balancers; one with a number dies in the middle of its so-many-th move:
//
//     ./reconfiguration rack7 3 0 & ./reconfiguration rack7 3 1 & ./reconfiguration rack7 3 2 5

#include "reconfiguration.hpp"

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

using services::Balancer;
using services::Cluster;
using services::Server;

constexpr std::uint64_t kServers = 12;
constexpr std::uint64_t kSites = 3;

Cluster find(Member& member) {
  Cluster cluster;
  for (std::uint64_t i = 0; i < kServers; ++i)
    cluster.servers.push_back(member.find(services::server_segment(i).name));
  for (std::uint64_t i = 0; i < kSites; ++i)
    cluster.sites.push_back(member.find(services::load_segment(i).name));
  return cluster;
}

/// Prints what the balancer does, and dies in the middle of its so-many-th move.
Balancer::Events printed(std::uint64_t dies_in_move) {
  return {.half_moved =
              [dies_in_move, moves = std::uint64_t{0}](std::uint64_t server) mutable {
                if (++moves != dies_in_move) return;
                std::cout << "dies while it moves server " << server << std::endl;
                raise(SIGKILL);
              },
          .moved =
              [](std::uint64_t server, std::uint64_t from, const Server& now) {
                std::cout << "move " << now.moves << " of server " << server << ": " << from
                          << " to " << now.site << std::endl;
              },
          .taken_over =
              [](std::uint64_t server, bool its_balancer_died) {
                std::cout << "ends the move of server " << server
                          << (its_balancer_died ? ", whose balancer died" : "") << std::endl;
              }};
}

void show(Member& member, const Cluster& cluster) {
  std::array<std::uint64_t, kSites> owned{};
  std::uint64_t moving = 0, moves = 0;
  for (const dunlin::Key key : cluster.servers) {
    Server server;
    demand(member.space.get(key, dunlin::bytes_of(server)));
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
    Server server{.site = i % kSites, .target = i % kSites};
    demand(
        member.space.put(member.allocate(services::server_segment(i)), dunlin::bytes_of(server)));
  }
  for (std::uint64_t i = 0; i < kSites; ++i) member.allocate(services::load_segment(i));
  const Cluster cluster = find(member);
  TypedLines input;
  while (!input.over()) {
    member.rest(5);
    const std::string* line = input.front();
    if (line == nullptr) continue;
    std::istringstream words(*line);
    std::string verb;
    std::uint64_t site = 0, load = 0;
    words >> verb >> site >> load;
    if (verb == "load" && site < kSites)
      demand(member.space.put(cluster.sites[site], dunlin::bytes_of(load)));
    if (verb == "show") show(member, cluster);
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
  Balancer balancer(member.space, find(member), printed(argc > 4 ? number(4) : 0));
  TypedLines input;
  while (!input.over() && member.alive(0)) {
    member.run(balancer.balance());
    member.rest(1);
    if (input.front() != nullptr) input.pop();
  }
  member.leave();
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
