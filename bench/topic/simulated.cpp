#include <array>

#include "bench/multicast/sim_cast.hpp"
#include "bench/table/simulation.hpp"
#include "bench/topic/experiments.hpp"

/// The published setting of the Spindle DDS: one publisher of samples of 10 KB, subscribers on
/// other nodes (of its 16), the four levels, with the optimizations of the multicast and without.
namespace dunlin::bench {
namespace {

constexpr const char* kNetwork = "ib100";
constexpr double kPerSecond = 1e9;
/// Assumptions, as none is published: a copy at 10 GB/s, and a log on an SSD at 2 GB/s besides.
constexpr double kCopyNsPerByte = 0.1;
constexpr double kLogNsPerByte = 0.5;

struct Level {
  const char* name;
  bool ordered;
  double store_ns_per_byte;
};
constexpr std::array kLevels{Level{"unordered", false, 0}, Level{"atomic", true, 0},
                             Level{"volatile_storage", true, kCopyNsPerByte},
                             Level{"logged", true, kCopyNsPerByte + kLogNsPerByte}};

/// One message a poll, whole slots, nothing folded: as the published baseline.
constexpr multicast::Switches kNone{.batch_receive = false,
                                    .batch_send = false,
                                    .batch_deliver = false,
                                    .nulls = false,
                                    .used_bytes_only = false,
                                    .one_cache_line = false};

std::vector<Result> simulated(const Effort& effort) {
  const Network network(effort, kNetwork);
  std::vector<Result> results;
  for (const std::uint32_t subscribers : {1U, 3U, 7U, 15U}) {
    if (effort.quick && subscribers > 3) break;
    for (const Level& level : kLevels) {
      for (const bool optimized : {true, false}) {
        SimCast cast{.members = subscribers + 1,
                     .senders = 1,
                     .messages = effort.quick ? 100U : 4'000U,
                     .ordered = level.ordered,
                     .store_ns_per_byte = level.store_ns_per_byte};
        if (!optimized) cast.switches = kNone;
        const auto values = over_seeds(effort, [&](std::uint64_t seed) {
          return run_sim_cast(network.profile, seed, cast).bytes_per_ns * kPerSecond;
        });
        const auto limits = over_seeds(effort, [&](std::uint64_t seed) {
          return run_sim_stream(network.profile, seed, cast) * kPerSecond;
        });
        results.push_back(compared({.params = {{"subscribers", double(subscribers)},
                                               {"level", level.name},
                                               {"optimized", optimized ? "all" : "nothing"}},
                                    .unit = "B/s"},
                                   values, "bare puts in the simulator", limits));
      }
    }
  }
  return results;
}

}  // namespace

Experiment simulated_topics() {
  return {.name = "simulated",
          .title = "bytes a second that each subscriber gets of one publisher's samples of 10 KB",
          .fabric = "sim",
          .x = "subscribers",
          .run = simulated};
}

}  // namespace dunlin::bench
