#include "bench/suites.hpp"

#include <string>

#include <CLI/CLI.hpp>

#include <dunlin/version.hpp>

#include "bench/container/experiments.hpp"
#include "bench/fabric/experiments.hpp"
#include "bench/multicast/bare_stream.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/node/experiments.hpp"
#include "bench/routing/experiments.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/store/experiments.hpp"
#include "bench/table/experiments.hpp"
#include "bench/topic/experiments.hpp"

namespace dunlin::bench {
namespace {

std::vector<Experiment> multicast_figures() {
  const RealNetwork& shm = real_network("shm");
  const auto over = [](const RealNetwork& network) {
    return network.both_ways ? std::vector{cast_throughput(network), cast_latency(network)}
                             : std::vector<Experiment>();
  };
  return joined<Experiment>(cast_throughput(shm), cast_latency(shm), casts_under_load(),
                            crowded_cast(), durable_cast(), view_change(), joins(),
                            on_each_network(over), simulated_view_change(), simulated_casts());
}

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all{
      {.name = "fabric",
       .description =
           "What operations cost: put, signal, get, atomics, messages; by size, batch and "
           "peers; on each fabric, beside what the same processes can do without Dunlin",
       .experiments =
           [] {
             return joined<Experiment>(
                 on_each_network(signalling, getting, atomics, messages, put_rate, put_stream,
                                 fan_out, signalling_asleep),
                 simulated_costs());
           },
       .has_profile = true},
      {.name = "table",
       .description =
           "The shared state table: detection, evaluation, counting, idling, failures; on "
           "shared memory, over networks and, beside the published figures, in the simulator",
       .experiments =
           [] {
             return joined<Experiment>(machine(), evaluation(), complexity(), row_size(),
                                       on_each_network(detection, counting, pushing, idle),
                                       on_each_network(failure), simulated_detection(),
                                       simulated_conjunction(), simulated_counting(),
                                       simulated_complexity(), simulated_row_size(),
                                       simulated_racks(), simulated_gigabit());
           },
       .has_profile = true},
      {.name = "multicast",
       .description = "Messages to all members of a view, in one order: throughput and latency",
       .experiments = multicast_figures,
       .most_members = kMostStreamMembers},
      {.name = "topic",
       .description = "Topics beside the bare multicast, relays beside TCP, gateways, and other "
                      "people's DDS",
       .experiments =
           [] {
             return joined<Experiment>(topic_throughput(), logged_throughput(), topic_latency(),
                                       many_topics(), sample_types(), arrivals(), relayed_samples(),
                                       gateway_to_dds(), on_each_network(dds_peers),
                                       simulated_topics());
           },
       .most_members = 16},
      {.name = "segment",
       .description = "Shared segments: gets and puts under each coherence, locks, operations in "
                      "flight, beside the bare sequences of operations, MPI and Redis; published "
                      "figures in the simulator",
       .experiments =
           [] {
             return joined<Experiment>(on_each_network(null_overhead, coherence, gets_in_flight,
                                                       uncontended_locks, contended_locks),
                                       daemon_trips(), segment_peers(), queries(),
                                       simulated_segments(), simulated_services());
           }},
      {.name = "container",
       .description =
           "Maps and queues: each call in both styles, beside the bare sequence of "
           "operations and its prediction; in flight, aggregated, by many processes, and "
           "with targets that compute; beside MPI; published figures in the simulator",
       .experiments =
           [] {
             return joined<Experiment>(
                 on_each_network(container_calls, calls_in_flight, queue_checksums,
                                 aggregated_inserts, attentiveness, style_choices, functions),
                 many_processes(), collectives(), container_peers(), simulated_containers(),
                 simulated_style_choices(), simulated_collectives());
           }},
      {.name = "store",
       .description =
           "The key-value store: lookups beside cuckoo and hopscotch tables, gets and puts "
           "beside their bare operations, and YCSB beside Redis, memcached and LMDB",
       .experiments =
           [] {
             return joined<Experiment>(lookup_cost(), on_each_network(store_gets),
                                       on_each_network(store_puts), on_each_network(store_growth),
                                       store_sizes(), store_cache(), store_twenty_million(),
                                       store_skew_and_reads(), store_clients(), store_ycsb(),
                                       store_latency(), simulated_store());
           }},
      {.name = "node",
       .description =
           "Node: sends of several threads, gets and calls that are handed over, beside a "
           "thread that polls by itself",
       .experiments = [] { return joined<Experiment>(node_sends(), node_gets()); }},
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
