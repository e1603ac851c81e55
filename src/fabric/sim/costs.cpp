#include "fabric/sim/costs.hpp"

#include <string>

namespace dunlin::sim {

Costs::Costs(const Profile& p)
    : write_latency(ticks(p.write_latency_ns)),
      read_half(ticks(p.read_latency_ns / 2)),
      atomic_half(ticks(p.atomic_latency_ns / 2)),
      message_latency(ticks(p.write_latency_ns + p.message_overhead_ns)),
      nic_gap(ticks(p.nic_gap_ns)),
      same_word_gap(p.native_atomics ? ticks(p.same_word_gap_ns) : 0),
      retry_timeout(ticks(p.retry_timeout_ns)),
      heartbeat_interval(ticks(p.heartbeat_interval_ns)),
      silence_timeout(ticks(p.silence_timeout_ns)),
      ticks_per_byte(p.bandwidth_bytes_per_ns > 0
                         ? static_cast<double>(kTicksPerNs) / p.bandwidth_bytes_per_ns
                         : 0),
      bus_ticks_per_byte(
          p.bus_bytes_per_ns > 0 ? static_cast<double>(kTicksPerNs) / p.bus_bytes_per_ns : 0),
      packet_bytes(p.packet_bytes),
      jitter(p.jitter) {}

void check(const Profile& p) {
  const auto demand = [&](bool holds, const char* what) {
    if (!holds) throw Error("profile '" + p.name + "': " + what);
  };
  demand(p.write_latency_ns >= 0 && p.read_latency_ns >= 0 && p.atomic_latency_ns >= 0 &&
             p.message_overhead_ns >= 0,
         "a latency may not be negative");
  demand(p.bandwidth_bytes_per_ns >= 0 && p.bus_bytes_per_ns >= 0,
         "a bandwidth may not be negative (0 means that there is no limit)");
  demand(p.nic_gap_ns >= 0 && p.same_word_gap_ns >= 0 && p.post_ns >= 0 && p.post_batched_ns >= 0 &&
             p.cpu.poll_ns >= 0,
         "a cost may not be negative");
  demand(p.jitter >= 0 && p.jitter < 1, "the jitter must be a fraction, from 0 to less than 1");
  demand(p.queue_slots > 0, "queue_slots must be at least 1");
  demand(p.racks > 0, "there must be at least one rack");
  demand(p.cross_rack_latency > 0 && p.cross_rack_bandwidth > 0,
         "the factors between racks must be positive");
}

}  // namespace dunlin::sim
