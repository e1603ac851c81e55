#include "bench/fabric/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include <dunlin/fabric/sim.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

std::vector<Experiment> find_experiments() {
  std::vector<Experiment> found;
  for (const RealNetwork& network : real_networks()) {
    for (const auto& figure :
         {signalling, getting, atomics, messages, put_rate, put_stream, fan_out}) {
      found.push_back(figure(network));
    }
    // Waking by shared memory is a figure of `dunlin bench table` (idle).
    if (network.name != "shm") found.push_back(signalling_asleep(network));
  }
  for (Experiment& simulated : simulated_costs()) found.push_back(std::move(simulated));
  return found;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const sim::Profile& profile : sim::profiles()) names.push_back(profile.name);
  return names;
}

}  // namespace

const std::vector<Experiment>& fabric_experiments() {
  static const std::vector<Experiment> experiments = find_experiments();
  return experiments;
}

void add_fabric_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "fabric",
      "What operations cost: put, signal, get, atomics, messages; by size, batch and peers; on "
      "each fabric, beside what the same processes can do without Dunlin");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->add_option("--profile", options->effort.profile, "Simulate this network instead")
      ->check(CLI::IsMember(profile_names()));
  command->callback([options] { run_suite(fabric_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
