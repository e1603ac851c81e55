#include "bench/suites.hpp"

#include <string>

#include <CLI/CLI.hpp>

#include <dunlin/version.hpp>

#include "bench/container/experiments.hpp"
#include "bench/fabric/experiments.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/routing/experiments.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/store/experiments.hpp"
#include "bench/table/experiments.hpp"
#include "bench/topic/experiments.hpp"

namespace dunlin::bench {

void add_suites(CLI::App& program) {
  program.description("Measure Dunlin against the raw limit, in the same processes, in turns.");
  program.set_version_flag("--version", "dunlin-bench " + std::string(version()));
  program.require_subcommand(1);
  add_fabric_suite(program);
  add_table_suite(program);
  add_multicast_suite(program);
  add_topic_suite(program);
  add_segment_suite(program);
  add_container_suite(program);
  add_store_suite(program);
  add_routing_suite(program);
}

}  // namespace dunlin::bench
