#include "bench/multicast/experiments.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "bench/multicast/bare_stream.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {

const std::vector<Experiment>& multicast_experiments() {
  static const std::vector<Experiment> experiments = [] {
    std::vector<Experiment> all{cast_throughput(), cast_latency()};
    const auto add = [&all](std::vector<Experiment> more) {
      std::ranges::move(more, std::back_inserter(all));
    };
    add(casts_under_load());
    add({crowded_cast(), durable_cast(), view_change()});
    add(joins());
    add(casts_over_networks());
    add({simulated_view_change()});
    add(simulated_casts());
    return all;
  }();
  return experiments;
}

void add_multicast_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "multicast", "Messages to all members of a view, in one order: throughput and latency");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command
      ->add_option("--members", options->effort.members,
                   "Of a group on shared memory; 2 if not given")
      ->check(CLI::Range(2U, kMostStreamMembers));
  command->callback([options] { run_suite(multicast_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
