#include "bench/table/experiments.hpp"

#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/harness/suite.hpp"

namespace dunlin::bench {

const std::vector<Experiment>& table_experiments() {
  static const std::vector<Experiment> experiments{machine(),    detection(), evaluation(),
                                                   complexity(), counting(),  row_size(),
                                                   pushing(),    idle()};
  return experiments;
}

void add_table_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "table",
      "The shared state table: detection, evaluation, counting, idling; on shared memory "
      "and, beside the published figures, in the simulator");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->callback([options] { run_suite(table_experiments(), *options, std::cout); });
}

}  // namespace dunlin::bench
