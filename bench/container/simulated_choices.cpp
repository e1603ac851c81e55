#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "bench/container/experiments.hpp"
#include "bench/container/simulated_processes.hpp"
#include "bench/container/style_choices.hpp"

/// The figure `grid` in virtual time, on the network of the published figures. A round is a seed.
namespace dunlin::bench {
namespace {

constexpr std::array<std::uint32_t, 3> kClients{1, 4, 16};
constexpr std::array<double, 4> kComputingUs{0, 2, 10, 50};
constexpr std::uint32_t kTimes = 16;  // calls of each client
constexpr std::uint32_t kMostSeeds = 3;

template <std::size_t Words>
class ChoiceProcess {
 public:
  ChoiceProcess(Fabric& fabric, Style style, const ComponentCosts& costs)
      : containers_(fabric, {.costs = costs}), calls_(containers_, style, 0) {}

  std::size_t poll() {
    const std::size_t done = containers_.poll();
    if (computing_ns_ <= 0) return done;
    containers_.fabric().spend(computing_ns_);
    return done + 1;
  }
  void compute_between_polls(double ns) noexcept { computing_ns_ = ns; }
  /// `pause_ns` is the longest of the random pauses between two calls, which do not count.
  remote::Job run(Call call, Promise promise, std::uint32_t times, double pause_ns,
                  double* sum_ns) {
    Fabric& fabric = containers_.fabric();
    std::mt19937_64 random(fabric.rank());
    calls_.begin_turn();
    for (std::uint32_t i = 0; i < times; ++i) {
      fabric.spend(pause_ns * static_cast<double>(random() % 1024) / 1024);
      const std::uint64_t begin_ns = fabric.now_ns();
      if (on_queue(call)) {
        auto& queue_call = calls_.begin_on_queue(call, promise);
        if (queue_call.pushes)
          static_cast<void>(co_await queue_call.push);
        else
          static_cast<void>(co_await queue_call.pop);
        demand(queue_call);
      } else {
        auto& operation = calls_.begin_on_map(call, promise);
        static_cast<void>(co_await operation);
        demand(operation);
      }
      *sum_ns += static_cast<double>(fabric.now_ns() - begin_ns) / times;
    }
  }

 private:
  Containers containers_;
  ChoiceCalls<Words> calls_;
  double computing_ns_ = 0;
};

template <std::size_t Words>
class SimulatedGrid {
 public:
  SimulatedGrid(const Effort& effort, std::uint32_t clients, Style style, std::uint64_t seed)
      : all_(network_of(effort, clients + 1), clients + 1, seed,
             [style, costs = component_costs(network_of(effort, 2))](Fabric& fabric) {
               return std::make_unique<ChoiceProcess<Words>>(fabric, style, costs);
             }),
        times_(effort.quick ? 2 : kTimes) {}

  /// Nanoseconds of a call, on average over the clients.
  double measure(const CallCase& which, double computing_us) {
    using Calls = ChoiceCalls<Words>;
    if (const auto before = Calls::before(which.call)) run(*before, Promise::both, 0);
    compute(computing_us * 1000);
    const double ns = run(which.call, which.promise, 2 * computing_us * 1000);
    compute(0);
    if (const auto after = Calls::after(which.call)) run(*after, Promise::both, 0);
    return ns;
  }

 private:
  double run(Call call, Promise promise, double pause_ns) {
    double sum_ns = 0;
    for (Rank rank = 1; rank < all_.layers.size(); ++rank)
      all_.start(rank, [&, call, promise, pause_ns](ChoiceProcess<Words>& process) {
        return process.run(call, promise, times_, pause_ns, &sum_ns);
      });
    all_.finish();
    return sum_ns / static_cast<double>(all_.layers.size() - 1);
  }
  void compute(double ns) {
    all_.world.on(0,
                  [holder = all_.layers.front().get(), ns] { holder->compute_between_polls(ns); });
    all_.world.run_for(200'000);
  }

  SimulatedMembers<ChoiceProcess<Words>> all_;
  std::uint32_t times_;
};

template <std::size_t Words>
void add_points(std::vector<ChoicePoint>& points, const Effort& effort, std::uint32_t clients) {
  constexpr std::size_t kPoints = kCallCases.size() * kComputingUs.size();
  std::array<std::array<std::vector<double>, kChoiceStyles.size()>, kPoints> times;
  for (std::uint64_t seed = 1; seed <= std::min(effort.rounds, kMostSeeds); ++seed)
    for (std::size_t style = 0; style < kChoiceStyles.size(); ++style) {
      SimulatedGrid<Words> grid(effort, clients, kChoiceStyles.at(style), seed);
      std::size_t place = 0;
      for (const CallCase& which : kCallCases)
        for (const double us : kComputingUs)
          times.at(place++).at(style).push_back(grid.measure(which, us));
    }
  std::size_t place = 0;
  for (const CallCase& which : kCallCases)
    for (const double us : kComputingUs) {
      ChoicePoint& point = points.emplace_back(ChoicePoint{which, Words, clients, us, {}});
      for (std::size_t style = 0; style < kChoiceStyles.size(); ++style)
        point.measured_ns.at(style) = summarize(times.at(place).at(style)).median;
      ++place;
    }
}

std::vector<Result> measure(const Effort& effort) {
  std::vector<ChoicePoint> points;
  for (const std::uint32_t clients : std::span(kClients).first(effort.quick ? 2 : 3)) {
    add_points<kChoiceWords[0]>(points, effort, clients);
    if (effort.quick) continue;
    add_points<kChoiceWords[1]>(points, effort, clients);
    add_points<kChoiceWords[2]>(points, effort, clients);
  }
  const ComponentCosts costs = component_costs(network_of(effort, 2));
  return judge_choices(points, std::vector(points.size(), costs));
}

}  // namespace

Experiment simulated_style_choices() {
  return {
      .name = "grid",
      .title = "the automatic style beside both others, by call, size, clients and attentiveness",
      .fabric = "sim",
      .run = measure};
}

}  // namespace dunlin::bench
