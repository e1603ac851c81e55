#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <dunlin/fabric/sim.hpp>

#include "fabric/sim/costs.hpp"
#include "fabric/sim/cpu.hpp"
#include "fabric/sim/forming.hpp"
#include "fabric/sim/network.hpp"
#include "fabric/sim/random.hpp"
#include "fabric/sim/sim_backend.hpp"
#include "fabric/sim/sim_rendezvous.hpp"
#include "fabric/sim/timeline.hpp"

namespace dunlin::sim {

struct Node {
  Node(Simulation& world, Rank node);
  Cpu cpu;
  std::unique_ptr<Fabric> fabric;  // in the world's own fabric; null: the node is not in it
};

/// All parts of a world; each knows the others through it.
struct Simulation {
  Simulation(Profile with_profile, std::uint32_t nodes, std::uint64_t seed);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() {
    for (const auto& node : nodes) node->fabric.reset();  // which need the network
  }

  [[nodiscard]] Cpu& cpu(Rank node) { return nodes[node]->cpu; }
  Rank add_node();

  /// Runs the next occurrence if it is not later than `until`.
  bool step(Ticks until);
  /// Lets the world run up to a moment, for a program that polls from outside of run_until().
  void catch_up(Ticks until);
  void pause(Rank node, Ticks duration);
  void set_timer(Ticks at, std::function<void()> action);
  /// Charges the node for a poll, before which a program outside of run_until() lets the world run;
  /// false if the node computes no more.
  [[nodiscard]] bool begin_poll(Rank node);

  const Profile profile;
  const Costs costs;
  Timeline timeline;
  Random network_random;  // separate, so that a program's draws do not change the network's
  Random program_random;
  std::vector<std::unique_ptr<Node>> nodes;
  Network network;
  PendingFabrics pending_fabrics;
  Listeners listeners;
  bool running = false;

 private:
  void happen(const Occurrence& occurrence);
  void run_round(Rank node);
  void run_timer(std::uint64_t slot);

  std::vector<std::function<void()>> timers_;
  std::vector<std::uint64_t> free_timers_;
};

}  // namespace dunlin::sim
