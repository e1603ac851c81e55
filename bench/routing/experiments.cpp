#include "bench/routing/experiments.hpp"

#include <random>
#include <vector>

#include "bench/harness/clock.hpp"
#include "routing/check.hpp"
#include "routing/paths.hpp"
#include "routing/run.hpp"

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
  return {.params = {{"routers", double(routers)}, {"time", what}},
          .unit = "ns",
          .value = summarize(series)};
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
  return {compared(figure(routers, "to the last install", last), last, "computing", computing),
          figure(routers, "to the first install", first), figure(routers, "computing", computing)};
}

template <class Run>
std::vector<Result> measure_all(std::vector<std::uint32_t> sizes, const Effort& effort, Run run) {
  if (effort.quick) sizes.resize(2);
  const std::uint32_t events = effort.quick ? effort.rounds : effort.rounds * kEventsPerRound;
  std::vector<Result> results;
  for (const std::uint32_t routers : sizes) {
    append(results, measure(routers, events, run));
  }
  return results;
}

/// With other costs each time, as a router meets them: the same ones again would measure how well
/// the processor remembers its branches.
Result time_paths(const Effort& effort, std::uint32_t routers) {
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
  return {.params = {{"routers", double(routers)}}, .unit = "ns", .value = summarize(series)};
}

std::vector<Result> on_processes(const Effort& effort) {
  return measure_all({4, 8, 16, 32, 64}, effort, [](const Plan& plan, auto listener) {
    return run_on_processes(plan, {}, listener);
  });
}

std::vector<Result> simulated(const Effort& effort) {
  return measure_all({4, 8, 12, 16, 20, 24, 28}, effort, [](const Plan& plan, auto listener) {
    return run_on_sim(plan, kProfile, 1, listener);
  });
}

}  // namespace

std::vector<Experiment> routing_experiments() {
  // The published figure: after one change of the hub's, time to the last install, to the first,
  // and time computing, over the number of routers. Then what a simulated router is charged for
  // computing.
  return {{.name = "hub-and-ring",
           .title = "routers install new paths after one change of the hub; a process for each",
           .fabric = "shm",
           .x = "routers",
           .run = on_processes},
          {.name = "hub-and-ring",
           .title = "the same, simulated on the network of the original experiment (ib40-2015)",
           .fabric = "sim",
           .x = "routers",
           .run = simulated},
          {.name = "paths",
           .title = "computing all shortest paths from one router, for each arc examined",
           .fabric = "none",
           .x = "routers",
           .run = for_settings({8U, 16U, 32U, 64U, 128U, 255U}, time_paths)}};
}

}  // namespace dunlin::bench
