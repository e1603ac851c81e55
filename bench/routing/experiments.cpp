#include "bench/routing/experiments.hpp"

#include <memory>
#include <random>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/harness/clock.hpp"
#include "bench/harness/suite.hpp"
#include "routing/check.hpp"
#include "routing/paths.hpp"
#include "routing/run.hpp"
#include "standard_output.hpp"

namespace dunlin::bench {

namespace {

using namespace routing;

constexpr const char* kProfile = "ib40-2015";  // the network of the original experiment
constexpr std::uint32_t kEventsPerRound = 20;

/// The hub changes its cost to one router after the other: all routers that send through it must
/// compute.
std::vector<LinkEvent> changes_of_the_hub(const Topology& topology, std::uint32_t count) {
  std::vector<LinkEvent> events;
  const ArcId arcs = topology.first_arc[1];  // those of router 0, the hub
  for (std::uint32_t i = 0; i < count; ++i) {
    const ArcId arc = i % arcs;
    const Cost base = topology.links[topology.arcs[arc].link].cost;
    const bool odd_turn = (i / arcs) % 2 != 0;
    events.push_back({.kind = EventKind::cost,
                      .link = topology.arcs[arc].link,
                      .before = odd_turn ? 2 * base : base,
                      .after = odd_turn ? base : 2 * base,
                      .changes = {{arc, odd_turn ? base : 2 * base}},
                      .one_direction = true});
  }
  return events;
}

Result figure(std::uint32_t routers, const char* what, const std::vector<double>& series) {
  Result result{.name = "hub-and-ring",
                .params = {{"routers", static_cast<double>(routers)}, {"time", what}},
                .unit = "ns"};
  result.value = summarize(series);
  return result;
}

template <class Run>
std::vector<Result> measure(std::uint32_t routers, std::uint32_t events, Run run) {
  const Topology topology = hub_ring(routers, {});
  const std::vector<LinkEvent> changes = changes_of_the_hub(topology, events);
  const Plan plan(topology, changes);
  std::vector<double> last;
  std::vector<double> first;
  std::vector<double> computing;
  const Finish finish = run(plan, [&](const EventRecord& record) {
    if (!record.event) return;
    last.push_back(static_cast<double>(record.last_ns.value_or(0)));
    first.push_back(static_cast<double>(record.first_ns.value_or(0)));
    computing.push_back(static_cast<double>(record.median_compute_ns));
  });
  const Verdict verdict = check(topology, costs_after(topology, changes, events), finish.tables);
  if (!verdict.agrees()) throw Error("hub-and-ring: " + verdict.differences.front());
  Result last_install = figure(routers, "to the last install", last);
  compare(last_install, last, "computing", computing);
  return {last_install, figure(routers, "to the first install", first),
          figure(routers, "computing", computing)};
}

template <class Run>
std::vector<Result> measure_all(std::vector<std::uint32_t> sizes, const Effort& effort, Run run) {
  if (effort.quick) sizes.resize(2);
  const std::uint32_t events = effort.quick ? effort.rounds : effort.rounds * kEventsPerRound;
  std::vector<Result> results;
  for (const std::uint32_t routers : sizes) {
    for (Result& result : measure(routers, events, run)) results.push_back(std::move(result));
  }
  return results;
}

/// With other costs each time, as a router meets them: the same ones again would measure how well
/// the processor remembers its branches.
std::vector<double> time_paths(std::uint32_t routers, const Effort& effort) {
  const Topology topology = hub_ring(routers, {});
  std::mt19937_64 draw(routers);
  std::vector<std::vector<Cost>> variants(64, topology.arc_costs());
  for (auto& costs : variants) {
    for (Cost& cost : costs) cost = kCostUnit * (1 + draw() % 100);
  }
  Paths paths(topology, 1);
  std::vector<double> series;
  std::size_t next = 0;
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    const Batches plan{.batches = 20, .per_batch = effort.scaled(200)};
    const double ns = batch_ns(plan, [&] { paths.compute(variants[next++ % variants.size()]); });
    series.push_back(ns / paths.arcs_examined());
  }
  return series;
}

}  // namespace

Experiment hub_and_ring_on_shm() {
  return {.name = "hub-and-ring",
          .title = "routers install new paths after one change of the hub; a process for each",
          .fabric = "shm",
          .x = "routers",
          .run = [](const Effort& effort) {
            return measure_all({4, 8, 16, 32, 64}, effort, [](const Plan& plan, auto listener) {
              return run_on_processes(plan, {}, listener);
            });
          }};
}

Experiment hub_and_ring_on_sim() {
  return {.name = "hub-and-ring",
          .title = "the same, simulated on the network of the original experiment (ib40-2015)",
          .fabric = "sim",
          .x = "routers",
          .run = [](const Effort& effort) {
            return measure_all({4, 8, 12, 16, 20, 24, 28}, effort,
                               [](const Plan& plan, auto listener) {
                                 return run_on_sim(plan, kProfile, 1, listener);
                               });
          }};
}

Experiment paths() {
  return {.name = "paths",
          .title = "computing all shortest paths from one router, for each arc examined",
          .fabric = "none",
          .x = "routers",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            for (const std::uint32_t routers : {8U, 16U, 32U, 64U, 128U, 255U}) {
              Result result{.name = "paths",
                            .params = {{"routers", static_cast<double>(routers)}},
                            .unit = "ns"};
              result.value = summarize(time_paths(routers, effort));
              results.push_back(std::move(result));
            }
            return results;
          }};
}

void add_routing_suite(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "routing",
      "The routing application on hub-and-ring networks: time to the last install, to the first, "
      "and time computing");
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  command->callback([options] {
    run_suite({hub_and_ring_on_shm(), hub_and_ring_on_sim(), paths()}, *options, app::say);
  });
}

}  // namespace dunlin::bench
