#include "bench/container/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

std::vector<Experiment> find_container_experiments() {
  std::vector<Experiment> found;
  for (const RealNetwork& network : real_networks())
    for (const auto& figure : {container_calls, calls_in_flight, queue_checksums,
                               aggregated_inserts, attentiveness, style_choices})
      found.push_back(figure(network));
  found.push_back(many_processes());
  found.push_back(container_peers());
  for (Experiment& simulated : simulated_containers()) found.push_back(std::move(simulated));
  found.push_back(simulated_style_choices());
  return found;
}

}  // namespace

const std::vector<Experiment>& container_experiments() {
  static const std::vector<Experiment> experiments = find_container_experiments();
  return experiments;
}

void add_container_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "container",
      "Maps and queues: each call in both styles, beside the bare sequence of operations and its "
      "prediction; in flight, aggregated, by many processes, and with targets that compute; beside "
      "MPI; published figures in the simulator");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->callback([options] { run_suite(container_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
