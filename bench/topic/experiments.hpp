#pragma once

#include <vector>

#include "bench/harness/experiment.hpp"

namespace CLI {
class App;
}

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
[[nodiscard]] Experiment dds_peers();
/// Over TCP, in a build that has it.
[[nodiscard]] std::vector<Experiment> dds_peers_over_networks();
[[nodiscard]] Experiment simulated_topics();

[[nodiscard]] const std::vector<Experiment>& topic_experiments();

/// `dunlin bench topic`
void add_topic_suite(CLI::App& bench);

}  // namespace dunlin::bench
