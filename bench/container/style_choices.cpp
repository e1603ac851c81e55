#include "bench/container/style_choices.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <dunlin/container/slot.hpp>

#include "bench/container/experiments.hpp"
#include "bench/harness/clock.hpp"
#include "container/calibrate.hpp"
#include "team/cores.hpp"

namespace dunlin::bench {
namespace {

constexpr double kLeastPercentRight = 95;
constexpr double kRightFactor = 1.1;
constexpr double kMostFactor = 1.3;
constexpr double kMostError = 0.1;
constexpr double kMostErrorOfSeveral = 0.15;  // clients

/// Of a map that this figure uses, on average.
constexpr double kLoad = 0.05;

// --- judging -------------------------------------------------------------------------------------

struct Judged {
  std::array<double, kPredictedStyles> predicted_ns{};
  double factor = 1;  // of the automatic style to the cheaper one
  std::array<bool, kPredictedStyles> close{};
};

Judged judge(const ChoicePoint& point, const ComponentCosts& costs) {
  Judged judged;
  const double most_error = point.clients > 1 ? kMostErrorOfSeveral : kMostError;
  for (std::size_t i = 0; i < kPredictedStyles; ++i) {
    const Style style = kChoiceStyles.at(i);
    Situation situation = point.situation();
    situation.used_lately = style == Style::one_sided && point.which.call != Call::insert;
    const double predicted = predict_ns(costs, point.which.call, style, situation);
    judged.predicted_ns.at(i) = predicted;
    judged.close.at(i) = std::abs(predicted / point.measured_ns.at(i) - 1) <= most_error;
  }
  const auto& [one_sided, message, automatic] = point.measured_ns;
  judged.factor = automatic / std::min(one_sided, message);
  return judged;
}

/// Counts over some points.
struct Tally {
  std::uint32_t points = 0;
  std::uint32_t right = 0;
  std::array<std::uint32_t, kPredictedStyles> close{};
  std::array<std::vector<double>, kPredictedStyles> accuracy;  // predicted to measured
  double worst = 0;
  std::string where;  // that was

  void add(const ChoicePoint& point, const Judged& judged) {
    ++points;
    right += judged.factor <= kRightFactor ? 1 : 0;
    for (std::size_t i = 0; i < close.size(); ++i) {
      close.at(i) += judged.close.at(i) ? 1 : 0;
      accuracy.at(i).push_back(judged.predicted_ns.at(i) / point.measured_ns.at(i));
    }
    if (judged.factor <= worst) return;
    worst = judged.factor;
    where = fmt::format(
        "{}, {}, {} bytes, {} client{}, computing {} us: {} one-sided, {} by message, {} "
        "automatic",
        name_of(point.which.call), name_of(point.which.promise), 8 * (point.words + 1),
        point.clients, point.clients == 1 ? "" : "s", point.computing_us,
        to_text(point.measured_ns[0], "ns"), to_text(point.measured_ns[1], "ns"),
        to_text(point.measured_ns[2], "ns"));
  }
  [[nodiscard]] double percent(std::uint32_t of_them) const { return 100.0 * of_them / points; }
};

Result grid_result(Params params, const char* unit, double value, Better better, std::string note) {
  Result result{
      .params = std::move(params), .unit = unit, .better = better, .note = std::move(note)};
  result.value = summarize(std::array{value});
  return result;
}

std::string accuracy_text(const Tally& tally) {
  std::string text = "predicted to measured";
  for (std::size_t i = 0; i < kPredictedStyles; ++i) {
    const Summary summary = summarize(tally.accuracy.at(i));
    text += fmt::format("{} {} {} ({} to {})", i == 0 ? ":" : ";", name_of(kChoiceStyles.at(i)),
                        to_text(summary.median), to_text(summary.min), to_text(summary.max));
  }
  return text;
}

constexpr const char* kShareOfRight =
    "points where automatic takes at most 1.1 times the cheaper style";

Result share_of_right(Params params, const Tally& tally) {
  return grid_result(std::move(params), "%", tally.percent(tally.right), Better::higher,
                     "At most " + to_text(tally.worst) + " times; " + accuracy_text(tally) + ".");
}

// --- measuring -----------------------------------------------------------------------------------

constexpr std::array<double, 2> kComputingUs{0, 10};
constexpr std::uint32_t kMostClients = 3;
constexpr std::uint32_t kWarmUps = 8192;
constexpr std::uint32_t kBatchesOfCosts = 100;

/// The members but the last call, and the last one holds the containers.
template <std::size_t Words>
class Grid {
 public:
  Grid(Member& me, const Group& group, const Effort& effort, const ComponentCosts& costs)
      : me_(me), here_(group.join(me.rank())), plan_(effort.plan(8, 4)) {
    here_.containers.set_costs(costs);
    for (const Style style : kChoiceStyles)
      calls_.emplace_back(here_.containers, style, me.size() - 1);
    connect(me, here_.node);
    meet();
  }

  /// Each page is mapped into this process the first time that it is used.
  void warm_up() {
    for (std::uint32_t i = 0; i < kWarmUps && !holds(); ++i)
      for (Calls& calls : calls_) calls.find_in_vain();
    meet();
  }
  /// Member 0 records the medians of both styles.
  void measure(const CallCase& which, double computing_us, std::uint32_t rounds) {
    std::array<std::vector<double>, kChoiceStyles.size()> times;
    for (std::uint32_t round = 0; round <= rounds; ++round)
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        const double ns = turn(calls_.at(i), which, computing_us);
        if (round > 0) times.at(i).push_back(ns);
      }
    if (me_.rank() != 0) return;
    for (const auto& of_style : times) me_.record(0, summarize(of_style).median);
  }

 private:
  using Calls = ChoiceCalls<Words>;

  [[nodiscard]] bool holds() const noexcept { return me_.rank() + 1 == me_.size(); }
  void meet(double computing_us = 0) {
    me_.meet([&] {
      here_.poll();
      if (holds() && computing_us > 0) spin_for(computing_us * 1000);
    });
  }
  void call_untimed(Calls& calls, std::optional<Call> call) {
    calls.begin_turn();
    for (std::uint64_t i = 0; call && !holds() && i < plan_.total(); ++i)
      calls.execute(*call, Promise::both);
    meet();
  }
  /// The same with random pauses between two calls, which do not count: else each request would
  /// come just behind the poll that has answered the one before.
  template <class Once>
  double apart_ns(const Once& once, double computing_us) {
    std::vector<double> clocks, times;
    for (std::uint64_t i = 0; i < plan_.total(); ++i) {
      spin_for(2 * computing_us * 1000 * static_cast<double>(random_() % 1024) / 1024);
      const double begin = now_ns();
      const double start = now_ns();
      once();
      times.push_back(now_ns() - start);
      clocks.push_back(start - begin);
    }
    return std::max(summarize(times).median - summarize(clocks).median, 1.0);
  }
  double turn(Calls& calls, const CallCase& which, double computing_us) {
    call_untimed(calls, Calls::before(which.call));
    calls.begin_turn();
    double ns = 0;
    const auto once = [&] { calls.execute(which.call, which.promise); };
    if (!holds()) ns = computing_us > 0 ? apart_ns(once, computing_us) : batch_ns(plan_, once);
    meet(computing_us);
    call_untimed(calls, Calls::after(which.call));
    return ns;
  }

  Member& me_;
  ContainerNode here_;
  Batches plan_;
  std::deque<Calls> calls_;  // by style
  std::mt19937_64 random_{7};
};

template <std::size_t Words>
void measure_size(std::vector<ChoicePoint>& points, const RealNetwork& network,
                  const Effort& effort, std::uint32_t clients, const ComponentCosts& costs) {
  const Group group(network, effort, clients + 1);
  Team team(group.team(clients + 1));
  team.run([&](Member& me) {
    Grid<Words> grid(me, group, effort, costs);
    if (network.passive_target && !effort.quick) grid.warm_up();
    for (const CallCase& which : kCallCases)
      for (const double us : kComputingUs) grid.measure(which, us, effort.rounds);
  });
  const auto times = team.series(0);
  std::size_t next = 0;
  for (const CallCase& which : kCallCases)
    for (const double us : kComputingUs) {
      ChoicePoint& point = points.emplace_back(ChoicePoint{which, Words, clients, us, {}});
      for (double& ns : point.measured_ns) ns = times[next++];
    }
}

/// A message to a member without a core waits for its time slice, which no component tells.
std::uint32_t most_clients(const Effort& effort) {
  const auto cores = static_cast<std::uint32_t>(app::usable_cores().size());
  return effort.quick ? 1 : std::clamp(cores - 1, 1U, kMostClients);
}

std::vector<Result> measure_choices(const RealNetwork& network, const Effort& effort) {
  std::vector<ChoicePoint> points;
  std::vector<ComponentCosts> costs;
  const app::FabricOptions options = options_on(network, effort);
  for (std::uint32_t clients = 1; clients <= most_clients(effort); ++clients) {
    const ComponentCosts found =
        app::calibrate(options, clients, effort.scaled(kBatchesOfCosts)).costs;
    measure_size<kChoiceWords[0]>(points, network, effort, clients, found);
    if (!effort.quick) {
      measure_size<kChoiceWords[1]>(points, network, effort, clients, found);
      measure_size<kChoiceWords[2]>(points, network, effort, clients, found);
    }
    costs.resize(points.size(), found);
  }
  return judge_choices(points, costs);
}

}  // namespace

Situation ChoicePoint::situation() const {
  const std::size_t payload = 8 * (words + 1);
  return {.promise = which.promise,
          .load = kLoad,
          .clients = static_cast<double>(clients),
          .bytes = static_cast<double>(container::shape_of(payload).slot_bytes),
          .wait_ns = computing_us * 1000 / 2};
}

std::vector<Result> judge_choices(const std::vector<ChoicePoint>& points,
                                  const std::vector<ComponentCosts>& costs_by_point) {
  Tally all;
  std::map<std::uint32_t, Tally> by_clients;
  std::vector<Result> of_cases;
  for (const CallCase& which : kCallCases) {
    Tally tally;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const ChoicePoint& point = points[i];
      if (point.which.call != which.call || point.which.promise != which.promise) continue;
      const Judged judged = judge(point, costs_by_point.at(i));
      tally.add(point, judged);
      all.add(point, judged);
      by_clients[point.clients].add(point, judged);
    }
    of_cases.push_back(share_of_right({{kShareOfRight, std::string(name_of(which.call))},
                                       {"promise", std::string(name_of(which.promise))}},
                                      tally));
  }
  std::vector<Result> results{
      grid_result({{kShareOfRight, "all calls"}}, "%", all.percent(all.right), Better::higher,
                  fmt::format("{} points.", all.points)),
      grid_result({{"most that automatic takes", "all calls"}}, "times the cheaper style",
                  all.worst, Better::lower, "At " + all.where + ".")};
  results[0].goal = Goal{.on = Goal::On::value, .bound = kLeastPercentRight};
  results[1].goal = Goal{.on = Goal::On::value, .bound = kMostFactor};
  for (std::size_t i = 0; i < kPredictedStyles; ++i) {
    results.push_back(grid_result({{"predictions within 10 %, or 15 % of several clients",
                                    std::string(name_of(kChoiceStyles.at(i)))}},
                                  "%", all.percent(all.close.at(i)), Better::higher, ""));
    results.back().goal = Goal{.on = Goal::On::value, .bound = 100};
  }
  for (const auto& [clients, tally] : by_clients)
    results.push_back(share_of_right(
        {{kShareOfRight, "all calls"}, {"clients", static_cast<double>(clients)}}, tally));
  std::ranges::move(of_cases, std::back_inserter(results));
  return results;
}

Experiment style_choices(const RealNetwork& network) {
  return {
      .name = "grid",
      .title = "the automatic style beside both others, by call, size, clients and attentiveness",
      .fabric = network.name,
      .run = [&network](const Effort& effort) { return measure_choices(network, effort); }};
}

}  // namespace dunlin::bench
