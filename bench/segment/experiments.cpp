#include "bench/segment/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

std::vector<Experiment> find_segment_experiments() {
  std::vector<Experiment> found;
  for (const RealNetwork& network : real_networks())
    for (const auto& figure :
         {null_overhead, coherence, gets_in_flight, uncontended_locks, contended_locks})
      found.push_back(figure(network));
  found.push_back(daemon_trips());
  found.push_back(segment_peers());
  for (Experiment& simulated : simulated_segments()) found.push_back(std::move(simulated));
  return found;
}

}  // namespace

const std::vector<Experiment>& segment_experiments() {
  static const std::vector<Experiment> experiments = find_segment_experiments();
  return experiments;
}

void add_segment_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "segment",
      "Shared segments: gets and puts under each coherence, locks, operations in flight, beside "
      "the bare sequences of operations, MPI and Redis; published figures in the simulator");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->callback([options] { run_suite(segment_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
