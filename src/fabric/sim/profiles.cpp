#include <string>

#include <dunlin/fabric/sim.hpp>

/// The figures; docs/formats/profiles.md derives each of them.
namespace dunlin::sim {

namespace {

/// A network in which only the way costs time, so that a protocol's steps can be counted in that
/// time.
Profile ideal() {
  return {.name = "ideal",
          .source = "no network: 1,000 ns each way, and a poll takes 10 ns",
          .write_latency_ns = 1'000,
          .read_latency_ns = 2'000,
          .atomic_latency_ns = 2'000,
          .message_overhead_ns = 0,
          .bandwidth_bytes_per_ns = 0,
          .nic_gap_ns = 0,
          .jitter = 0,
          .post_ns = 0,
          .post_batched_ns = 0,
          .cpu = {.poll_ns = 10, .predicate_ns = 0, .entry_ns = 0, .trigger_ns = 0},
          .max_inline_bytes = 64,
          .queue_slots = 1'024,
          .ordered_placement = true,
          .native_atomics = true};
}

Profile ib40_2015() {
  return {.name = "ib40-2015",
          .source =
              "the 40 Gb/s InfiniBand cluster (Opteron 6272) on which the shared state table "
              "was published in 2015: its raw detection latencies and evaluation rates",
          .write_latency_ns = 5'387,
          .read_latency_ns = 4'348,
          .atomic_latency_ns = 4'348,
          .message_overhead_ns = 0,
          .bandwidth_bytes_per_ns = 4.0,
          .nic_gap_ns = 38.5,
          .jitter = 0.05,
          .post_ns = 383,
          .post_batched_ns = 383,
          .cpu = {.poll_ns = 26.8, .predicate_ns = 598, .entry_ns = 26.8, .trigger_ns = 598},
          .max_inline_bytes = 64,
          .queue_slots = 128,
          .ordered_placement = true,
          .native_atomics = true};
}

Profile ib100() {
  return {.name = "ib100",
          .source =
              "the 100 Gb/s InfiniBand cluster on which the Spindle optimizations were "
              "published: RDMA write latency of 1 byte and of 4 KB, time to post, bandwidth",
          .write_latency_ns = 1'730,
          .read_latency_ns = 3'460,
          .atomic_latency_ns = 3'460,
          .message_overhead_ns = 0,
          .bandwidth_bytes_per_ns = 12.5,
          .nic_gap_ns = 10,
          .jitter = 0.05,
          .post_ns = 1'000,
          .post_batched_ns = 1'000,
          .cpu = {.poll_ns = 20, .predicate_ns = 5, .entry_ns = 1, .trigger_ns = 5},
          .max_inline_bytes = 64,
          .queue_slots = 256,
          .ordered_placement = true,
          .native_atomics = true,
          .bus_bytes_per_ns = 10.18,
          .packet_bytes = 4'096};
}

Profile ib1_2015() {
  Profile slow = ib40_2015();
  slow.name = "ib1-2015";
  slow.source =
      "the 1 Gb/s network of the same publication, which gives its bandwidth, and that "
      "reads are much slower than writes there; by how much is an assumption (10 times)";
  slow.read_latency_ns = slow.atomic_latency_ns = 10 * slow.write_latency_ns;
  slow.bandwidth_bytes_per_ns = 0.125;
  return slow;
}

Profile two_racks() {
  Profile racks = ib40_2015();
  racks.name = "two-racks";
  racks.source =
      "ib40-2015 in two racks; between them twice the latency, as the same publication reports for "
      "three switches, and 80 % of the bandwidth, which it reports for other switches of one rack: "
      "between racks that is an assumption";
  racks.racks = 2;
  racks.cross_rack_latency = 2.0;
  racks.cross_rack_bandwidth = 0.8;
  return racks;
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all{ideal(), ib40_2015(), ib100(), ib1_2015(), two_racks()};
  return all;
}

const Profile& profile(std::string_view name) {
  std::string known;
  for (const Profile& each : profiles()) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  throw Error("there is no network profile '" + std::string(name) + "'; there are: " + known);
}

}  // namespace dunlin::sim
