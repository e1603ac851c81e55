#include "bench/suites.hpp"

#include <string>

#include <CLI/CLI.hpp>

#include <dunlin/version.hpp>

#include "bench/container/experiments.hpp"
#include "bench/fabric/experiments.hpp"
#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/routing/experiments.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/store/experiments.hpp"
#include "bench/table/experiments.hpp"
#include "bench/topic/experiments.hpp"

namespace dunlin::bench {

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all{
      {.name = "fabric",
       .description =
           "What operations cost: put, signal, get, atomics, messages; by size, batch and "
           "peers; on each fabric, beside what the same processes can do without Dunlin",
       .experiments = fabric_experiments,
       .has_profile = true},
      {.name = "table",
       .description =
           "The shared state table: detection, evaluation, counting, idling, failures; on "
           "shared memory, over networks and, beside the published figures, in the simulator",
       .experiments = table_experiments,
       .has_profile = true},
      {.name = "multicast",
       .description = "Messages to all members of a view, in one order: throughput and latency",
       .experiments = multicast_experiments,
       .most_members = kMostStreamMembers},
      {.name = "topic",
       .description = "Topics beside the bare multicast, relays beside TCP, gateways, and other "
                      "people's DDS",
       .experiments = topic_experiments,
       .most_members = 16},
      {.name = "segment",
       .description = "Shared segments: gets and puts under each coherence, locks, operations in "
                      "flight, beside the bare sequences of operations, MPI and Redis; published "
                      "figures in the simulator",
       .experiments = segment_experiments},
      {.name = "container",
       .description =
           "Maps and queues: each call in both styles, beside the bare sequence of "
           "operations and its prediction; in flight, aggregated, by many processes, and "
           "with targets that compute; beside MPI; published figures in the simulator",
       .experiments = container_experiments},
      {.name = "store",
       .description =
           "The key-value store: lookups beside cuckoo and hopscotch tables, gets and puts "
           "beside their bare operations, and YCSB beside Redis, memcached and LMDB",
       .experiments = store_experiments},
      {.name = "routing",
       .description =
           "The routing application on hub-and-ring networks: time to the last install, to "
           "the first, and time computing",
       .experiments = routing_experiments}};
  return all;
}

void add_suites(CLI::App& program) {
  program.description("Measure Dunlin against the raw limit, in the same processes, in turns.");
  program.set_version_flag("--version", "dunlin-bench " + std::string(version()));
  program.require_subcommand(1);
  for (const Suite& suite : suites()) add_suite(program, suite);
}

}  // namespace dunlin::bench
