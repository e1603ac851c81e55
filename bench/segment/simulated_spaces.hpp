#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/segment.hpp>

#include "bench/fabric/simulated_members.hpp"

/// Simulated members with a space each, on the network of DDSS.
namespace dunlin::bench {

/// The paper gives 20 us for a put of 1 byte under null through the daemon, so 10 us for the write;
/// 54.3 us under write coherence, which adds two atomics, so 17.15 us for each. It gives no read:
/// ours takes as long as a write. The port: 8 Gb/s, as a 4X InfiniBand link of that time.
[[nodiscard]] inline sim::Profile ddss_network() {
  sim::Profile network = sim::profile("ideal");
  network.name = "ib-2006";
  network.source = "derived from the latencies of 1 byte that DDSS publishes";
  network.write_latency_ns = 5'000;
  network.read_latency_ns = 10'000;
  network.atomic_latency_ns = 17'150;
  network.bandwidth_bytes_per_ns = 1;
  network.jitter = 0.02;
  network.silence_timeout_ns = 0;
  return network;
}

class SimulatedSpaces : public SimulatedMembers<SegmentSpace> {
 public:
  SimulatedSpaces(const sim::Profile& profile, std::uint32_t members, std::uint64_t seed)
      : SimulatedMembers(profile, members, seed, [](Fabric& fabric) {
          return std::make_unique<SegmentSpace>(fabric, SpaceOptions{.pool_bytes = 1 << 18});
        }) {}

  Key make(const SegmentSpec& spec) {
    auto made = layers.front()->allocate(spec);
    run_until([&] { return made.finished(); });
    if (!made.ok()) throw Error("bench: " + made.describe());
    return made.result().key;
  }
};

inline void demand_ok(const Outcome& outcome) {
  if (!outcome.ok())
    throw Error("bench: a simulated operation ends: " + std::string(describe(outcome.status)));
}

}  // namespace dunlin::bench
