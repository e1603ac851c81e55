#include "bench/store/experiments.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {
namespace {

std::vector<Experiment> find_store_experiments() {
  std::vector<Experiment> found{lookup_cost()};
  for (const RealNetwork& network : real_networks()) found.push_back(store_gets(network));
  for (const RealNetwork& network : real_networks()) found.push_back(store_puts(network));
  for (const RealNetwork& network : real_networks()) found.push_back(store_growth(network));
  found.push_back(store_sizes());
  found.push_back(store_cache());
  found.push_back(store_twenty_million());
  found.push_back(store_skew_and_reads());
  found.push_back(store_clients());
  found.push_back(store_ycsb());
  found.push_back(store_latency());
  found.push_back(simulated_store());
  return found;
}

}  // namespace

const std::vector<Experiment>& store_experiments() {
  static const std::vector<Experiment> experiments = find_store_experiments();
  return experiments;
}

void add_store_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "store",
      "The key-value store: lookups beside cuckoo and hopscotch tables, gets and puts beside their "
      "bare operations, and YCSB beside Redis, memcached and LMDB");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->callback([options] { run_suite(store_experiments(), *options, app::say); });
}

}  // namespace dunlin::bench
