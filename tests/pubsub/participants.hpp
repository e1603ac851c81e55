#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/pubsub.hpp>

#include "log/simulated_disk.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

namespace dunlin::test {

/// A sample that says which one it is.
struct Count {
  std::uint32_t writer = 0;
  std::uint32_t instance = 0;
  std::uint64_t number = 0;
  using TopicKey = pubsub::KeyOf<&Count::instance>;
};
/// Of a topic without instances.
struct Plain {
  std::uint64_t number = 0;
};

/// Participants in the simulator, one a node.
class Participants {
 public:
  struct Node {
    std::unique_ptr<GroupEntry> entry;
    std::unique_ptr<Group> group;
    std::unique_ptr<pubsub::DomainParticipant> participant;
    std::function<std::size_t()> work;  // beside poll()
    std::string error;
    bool dead = false;
  };
  using Disks = std::vector<std::unique_ptr<log::SimulatedDisk>>;

  /// `logs`: of those that have disks, the first ones; without founders, all of them are.
  explicit Participants(std::uint32_t founders, std::uint64_t seed = 1, std::uint32_t joiners = 0,
                        Disks* disks = nullptr, sim::Profile profile = sim::profile("ib100"),
                        pubsub::ParticipantOptions logs = {})
      : world(std::move(profile), founders, seed),
        nodes(founders + joiners),
        disks_(disks),
        logs_(std::move(logs)) {
    // Over seeds, members become senders and cease to be senders all the time (PUB-W1).
    if (seed > 1) logs_.sender_linger_ms = static_cast<std::uint32_t>(seed % 3);
    joinable_ = joiners > 0;
    for (std::uint32_t i = 0; i < joiners; ++i) world.add_node();
    for (Rank rank = 0; rank < nodes.size(); ++rank)
      world.attach(rank, [this, rank] { return step(rank); });
    for (Rank rank = 0; rank < founders; ++rank) {
      nodes[rank].group = std::make_unique<Group>(world.fabric(rank), group_options(rank));
      begin(rank);
    }
  }
  ~Participants() {
    for (Node& node : nodes) {
      node.work = nullptr;
      node.participant.reset();
    }
  }
  Participants(const Participants&) = delete;
  Participants& operator=(const Participants&) = delete;

  static Disks make_disks(std::uint32_t members, std::uint64_t seed) {
    Disks disks;
    for (std::uint32_t i = 0; i < members; ++i) {
      disks.push_back(std::make_unique<log::SimulatedDisk>(seed * 100 + i, 64));
      disks.back()->latency(5'000, 200'000);
    }
    return disks;
  }

  pubsub::DomainParticipant& operator[](Rank rank) { return *nodes[rank].participant; }

  void come(Rank rank) { come(rank, "node" + std::to_string(rank)); }
  /// Under the name of a node that has crashed.
  void come(Rank rank, const std::string& name) {
    world.on(rank, [this, rank, name] {
      nodes[rank].entry = std::make_unique<GroupEntry>(name, group_options(rank), 60'000);
    });
  }
  void crash(Rank rank) {
    nodes[rank].dead = true;
    world.crash(rank);
  }
  bool until(const std::function<bool()>& condition, std::uint64_t limit_ns = 2'000'000'000) {
    for (Rank rank = 0; rank < nodes.size(); ++rank)
      if (!nodes[rank].dead) world.on(rank, [] {});
    return world.run_until(condition, limit_ns);
  }
  void run_for(std::uint64_t ns) {
    for (Rank rank = 0; rank < nodes.size(); ++rank)
      if (!nodes[rank].dead) world.on(rank, [] {});
    world.run_for(ns);
  }

  sim::World world;
  std::vector<Node> nodes;

 private:
  GroupOptions group_options(Rank rank) {
    return {.rendezvous = joinable_ ? world.rendezvous(rank, "sim") : nullptr};
  }
  void begin(Rank rank) {
    pubsub::ParticipantOptions options = logs_;
    if (disks_ != nullptr && rank < disks_->size()) {
      options.log_directory = ".";
      options.log_disk = std::shared_ptr<log::Disk>(std::shared_ptr<void>(), (*disks_)[rank].get());
      const bool all = options.log_founders.empty();
      for (Rank other = 0; all && other < world.size() && other < disks_->size(); ++other)
        options.log_founders.push_back("node" + std::to_string(other));
    }
    nodes[rank].participant =
        std::make_unique<pubsub::DomainParticipant>(*nodes[rank].group, std::move(options));
  }
  std::size_t step(Rank rank) {
    Node& node = nodes[rank];
    std::size_t done = 0;
    try {
      if (node.entry) {
        node.group = node.entry->poll();
        if (!node.group) return 0;
        node.entry.reset();
        begin(rank);
        ++done;
      }
      if (!node.participant) return 0;
      if (node.work) done += node.work();
      done += node.participant->poll();
    } catch (const std::exception& error) {
      if (node.error.empty()) ++done;
      node.error = error.what();
    }
    return done;
  }

  bool joinable_ = false;
  Disks* disks_;
  pubsub::ParticipantOptions logs_;
};

/// One Run for each seed: Run(seed, level).run(), which must have `samples` in the end.
template <class Run>
void audit_seeds(std::uint32_t usual, pubsub::Level level, std::uint64_t least_each) {
  std::uint64_t samples = 0;
  const Seeds seeds(rounds(usual));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    Run run(seed, level);
    run.run();
    samples += run.samples;
  });
  if (seeds.are_usual) {
    EXPECT_GT(samples, rounds(usual) * least_each) << "readers were given samples at all";
  }
}

}  // namespace dunlin::test
