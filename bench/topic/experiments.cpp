#include "bench/topic/experiments.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {

const std::vector<Experiment>& topic_experiments() {
  static const std::vector<Experiment> experiments = [] {
    std::vector<Experiment> all{topic_throughput(), logged_throughput(), topic_latency(),
                                many_topics(), sample_types()};
    std::ranges::move(arrivals(), std::back_inserter(all));
    all.push_back(relayed_samples());
    std::ranges::move(gateway_to_dds(), std::back_inserter(all));
    all.push_back(dds_peers());
    std::ranges::move(dds_peers_over_networks(), std::back_inserter(all));
    all.push_back(simulated_topics());
    return all;
  }();
  return experiments;
}

void add_topic_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "topic",
      "Topics beside the bare multicast, relays beside TCP, gateways, and other people's DDS");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command
      ->add_option("--members", options->effort.members,
                   "Of a group on shared memory; 2 if not given")
      ->check(CLI::Range(2U, 16U));
  command->callback([options] { run_suite(topic_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
