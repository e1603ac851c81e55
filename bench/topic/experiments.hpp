#pragma once

#include <vector>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of topics, beside the bare multicast and beside other people's DDS.
namespace dunlin::bench {

[[nodiscard]] Experiment topic_throughput();
[[nodiscard]] Experiment logged_throughput();
[[nodiscard]] Experiment topic_latency();
/// 1 to 256 topics, one or all in use.
[[nodiscard]] Experiment many_topics();
/// Samples that travel as they are, and samples that are encoded.
[[nodiscard]] Experiment sample_types();
/// Topics and readers that come while others are at work.
[[nodiscard]] std::vector<Experiment> arrivals();
/// What a relay adds for a program that is no member.
[[nodiscard]] Experiment relayed_samples();
/// What a gateway adds for a program that knows DDS only; none in a build without Cyclone DDS.
[[nodiscard]] std::vector<Experiment> gateway_to_dds();
/// On shared memory and, in a build that has it, over TCP.
[[nodiscard]] std::vector<Experiment> dds_peers(const RealNetwork& network);
[[nodiscard]] Experiment simulated_topics();

}  // namespace dunlin::bench
