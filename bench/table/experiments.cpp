#include "bench/table/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include <dunlin/fabric/sim.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const sim::Profile& profile : sim::profiles()) names.push_back(profile.name);
  return names;
}

std::vector<Experiment> all_experiments() {
  std::vector<Experiment> all{machine(),  detection(), evaluation(), complexity(),
                              counting(), row_size(),  pushing(),    idle()};
  for (Experiment& experiment : network_experiments()) all.push_back(std::move(experiment));
  for (const RealNetwork& network : real_networks()) all.push_back(failure(network));
  for (const auto& simulated :
       {simulated_detection, simulated_conjunction, simulated_counting, simulated_complexity,
        simulated_row_size, simulated_racks, simulated_gigabit}) {
    all.push_back(simulated());
  }
  return all;
}

}  // namespace

const std::vector<Experiment>& table_experiments() {
  static const std::vector<Experiment> experiments = all_experiments();
  return experiments;
}

void add_table_suite(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("table",
                           "The shared state table: detection, evaluation, counting, idling, "
                           "failures; on shared memory, "
                           "over networks and, beside the published figures, in the simulator");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->add_option("--profile", options->effort.profile, "Simulate this network instead")
      ->check(CLI::IsMember(profile_names()));
  command->callback([options] { run_suite(table_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
