#include "command.hpp"

#include <CLI/CLI.hpp>

#include "bench/container/experiments.hpp"
#include "bench/fabric/experiments.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/routing/experiments.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/store/experiments.hpp"
#include "bench/table/experiments.hpp"
#include "bench/topic/experiments.hpp"

namespace dunlin::app {

void add_bench(CLI::App& program) {
  CLI::App* bench = program.add_subcommand(
      "bench", "Measure against the raw limit, in the same processes, in turns");
  bench->require_subcommand(1);
  bench::add_fabric_suite(*bench);
  bench::add_table_suite(*bench);
  bench::add_multicast_suite(*bench);
  bench::add_topic_suite(*bench);
  bench::add_segment_suite(*bench);
  bench::add_container_suite(*bench);
  bench::add_store_suite(*bench);
  bench::add_routing_suite(*bench);
}

}  // namespace dunlin::app
