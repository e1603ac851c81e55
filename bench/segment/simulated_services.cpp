#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "bench/segment/experiments.hpp"
#include "bench/segment/simulated_spaces.hpp"
#include "bench/table/simulation.hpp"
#include "examples/services/checkpointing.hpp"
#include "examples/services/reconfiguration.hpp"

/// Figures 8a and 9b of DDSS: services of examples/services, in virtual time, on the network of
/// figure 4. Member 0 has the segments. A round is a seed.
namespace dunlin::bench {
namespace {

using services::Balancer;
using services::Cluster;
using services::Server;
using services::Worker;

/// The mean of each of so many figures that a seed gives, one row for each, by seeds.
template <std::size_t Figures, class Measure>
std::array<Summary, Figures> summaries(const Effort& effort, const Measure& measure) {
  std::array<std::vector<double>, Figures> series;
  for (std::uint64_t seed = 1; seed <= effort.rounds; ++seed) {
    const std::array<double, Figures> figures = measure(seed);
    for (std::size_t i = 0; i < Figures; ++i) series.at(i).push_back(figures.at(i));
  }
  std::array<Summary, Figures> all;
  std::ranges::transform(series, all.begin(), [](const auto& each) { return summarize(each); });
  return all;
}

// --- figure 8a -----------------------------------------------------------------------------------

constexpr double kPublishedReconfigurationNs = 133'000;
constexpr std::uint32_t kServers = 20;
constexpr std::uint64_t kSites = 4;
constexpr std::uint32_t kBalancers = 4;
/// What a heavily loaded server has to do, and another one. Assumptions, as all numbers here.
constexpr std::uint64_t kHeavy = 20, kLight = 1;
constexpr std::uint64_t kChangeNs = 50'000'000;  // from one load to the next
constexpr double kMostRestNs = 2'000'000;        // of a balancer, between two looks at all servers

remote::Job set_servers(SegmentSpace& space, const Cluster& cluster) {
  for (std::uint64_t i = 0; i < kServers; ++i) {
    Server server{.site = i % kSites, .target = i % kSites};
    demand_ok(co_await space.put(cluster.servers[i], bytes_of(server)));
  }
}

/// So many servers, others each time, are heavily loaded.
remote::Job set_loads(SegmentSpace& space, const Cluster& cluster, std::uint32_t loaded,
                      std::mt19937_64& random) {
  std::array<std::uint64_t, kServers> work{};
  std::ranges::fill(work, kLight);
  std::fill_n(work.begin(), loaded, kHeavy);
  std::ranges::shuffle(work, random);
  std::array<std::uint64_t, kSites> loads{};
  for (std::size_t i = 0; i < kServers; ++i) loads.at(i % kSites) += work.at(i);
  for (std::size_t i = 0; i < kSites; ++i)
    demand_ok(co_await space.put(cluster.sites[i], bytes_of(loads.at(i))));
}

remote::Job balance(Balancer& balancer, Fabric& fabric, const bool& over) {
  std::mt19937_64 random(fabric.rank());
  while (!over) {
    co_await balancer.balance();
    fabric.spend(std::uniform_real_distribution<>(0, kMostRestNs)(random));
  }
}

/// What a move takes, and how many there are for a change of the load.
std::array<double, 2> reconfigure(std::uint64_t seed, std::uint32_t loaded, std::uint32_t changes) {
  SimulatedSpaces all(ddss_network(), kBalancers + 1, seed);
  Cluster cluster;
  for (std::uint64_t i = 0; i < kServers; ++i)
    cluster.servers.push_back(all.make(services::server_segment(i)));
  for (std::uint64_t i = 0; i < kSites; ++i)
    cluster.sites.push_back(all.make(services::load_segment(i)));
  all.start(0, [&](SegmentSpace& space) { return set_servers(space, cluster); });
  all.finish();
  bool over = false;
  std::deque<Balancer> balancers;
  for (Rank rank = 1; rank <= kBalancers; ++rank)
    all.start(rank, [&](SegmentSpace& space) {
      return balance(balancers.emplace_back(space, cluster), space.fabric(), over);
    });
  std::mt19937_64 random(seed);
  for (std::uint32_t change = 0; change < changes; ++change) {
    all.start(0, [&](SegmentSpace& space) { return set_loads(space, cluster, loaded, random); });
    all.world.run_for(kChangeNs);
  }
  over = true;
  all.finish();
  double moves = 0, ns = 0;
  for (const Balancer& balancer : balancers) {
    moves += static_cast<double>(balancer.moves());
    ns += static_cast<double>(balancer.moving_ns());
  }
  if (moves == 0) throw Error("bench: no balancer has moved a server");
  return {ns / moves, moves / changes};
}

std::vector<Result> reconfiguration(const Effort& effort) {
  const std::vector<std::uint32_t> loads =
      effort.quick ? std::vector{4U, 8U} : std::vector{1U, 2U, 4U, 8U, 12U, 16U};
  std::vector<Result> results;
  for (const std::uint32_t loaded : loads) {
    const auto [move, count] = summaries<2>(effort, [&](std::uint64_t seed) {
      return reconfigure(seed, loaded, effort.quick ? 4 : 40);
    });
    const ParamValue percent = 100.0 * loaded / kServers;
    results.push_back({.params = {{"figure", "a move"}, {"% loaded", percent}},
                       .unit = "ns",
                       .value = move,
                       .published = kPublishedReconfigurationNs});
    results.push_back({.params = {{"figure", "moves for a change"}, {"% loaded", percent}},
                       .unit = "moves",
                       .value = count,
                       .note = "Published: linearly more up to 40 % loaded servers, as many up to "
                               "80 %, and fewer there."});
  }
  return results;
}

// --- figure 9b -----------------------------------------------------------------------------------

constexpr double kPublishedCheckpointNs = 150'000;

/// Works to the end, and restarts at random.
remote::Job work(Worker& worker, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!worker.done()) {
    if (random() % 16 == 0) co_await worker.restart();
    co_await worker.step();
  }
  co_await worker.restart();
}

/// What a check-point takes, and a restart.
std::array<double, 2> checkpoint(std::uint64_t seed, std::uint32_t workers, std::uint64_t epochs) {
  SimulatedSpaces all(ddss_network(), workers + 1, seed);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < 2 * workers; ++i)
    keys.push_back(all.make(services::checkpoint_segment(i)));
  std::deque<Worker> running;
  for (Rank rank = 1; rank <= workers; ++rank)
    all.start(rank, [&, rank](SegmentSpace& space) {
      return work(running.emplace_back(space, keys, epochs), seed * 100 + rank);
    });
  all.finish();
  const std::uint64_t result = services::digest_of_one_process(workers, epochs);
  double checkpoint_ns = 0, restart_ns = 0, checkpoints = 0, restarts = 0;
  for (const Worker& worker : running) {
    if (services::digest(worker.states()) != result)
      throw Error("bench: the workers have another result than one process");
    checkpoint_ns += static_cast<double>(worker.checkpoint_ns());
    checkpoints += static_cast<double>(worker.checkpoints());
    restart_ns += static_cast<double>(worker.restart_ns());
    restarts += static_cast<double>(worker.restarts());
  }
  return {checkpoint_ns / checkpoints, restart_ns / restarts};
}

std::vector<Result> checkpointing(const Effort& effort) {
  const std::vector<std::uint32_t> counts =
      effort.quick ? std::vector{2U, 4U} : std::vector{2U, 4U, 6U, 8U, 11U};
  std::vector<Result> results;
  for (const std::uint32_t workers : counts) {
    const auto [write, restart] = summaries<2>(effort, [&](std::uint64_t seed) {
      return checkpoint(seed, workers, effort.quick ? 4 : 20);
    });
    results.push_back({.params = {{"figure", "a check-point"}, {"workers", double(workers)}},
                       .unit = "ns",
                       .value = write,
                       .published = kPublishedCheckpointNs});
    results.push_back({.params = {{"figure", "a restart"}, {"workers", double(workers)}},
                       .unit = "ns",
                       .value = restart,
                       .note = "Published: a restart takes longer with more workers."});
  }
  return results;
}

}  // namespace

std::vector<Experiment> simulated_services() {
  return experiments_on(
      "sim", {{"simulated reconfiguration",
               "moves of servers between sites, by how many are heavily loaded (figure 8a)",
               "% loaded", reconfiguration},
              {"simulated check-points", "check-points and restarts of workers (figure 9b)",
               "workers", checkpointing}});
}

}  // namespace dunlin::bench
