#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "bench/container/call_target.hpp"
#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

/// To the bare sequence, on shared memory.
constexpr double most_ratio(Call call) noexcept { return call == Call::insert ? 1.15 : 1.3; }

// Series of the team.
enum : std::uint32_t { of_bare, of_one_sided, of_message, predicted_one_sided, predicted_message };

/// One of the calls, as often as it is asked for, on keys of its own.
class Caller : public CallTarget {
 public:
  Caller(ContainerPair& pair, const CallCase& which) : CallTarget(pair, which) {}

  void bare_once() {
    const std::uint32_t slot = next_slot();
    switch (which_.call) {
      case Call::insert:
        return which_.promise == Promise::both ? bare_.insert(slot) : bare_.insert_as_ready(slot);
      case Call::assign:
        return bare_.assign(slot);
      case Call::find:
        return bare_.find(slot);
      case Call::erase:
        return bare_.erase(slot);
      case Call::push:
        return bare_.push(turn());
      case Call::pop:
        return which_.promise == Promise::both ? bare_.pop(turn())
                                               : bare_.pop_beside_no_pushes(turn());
    }
  }
  void once(Style style) {
    const std::uint64_t key = next_key();
    switch (which_.call) {
      case Call::insert:
        return finish(map_.insert(key, key, which_.promise, style));
      case Call::assign:
        return finish(map_.assign(key, turn(), which_.promise, style));
      case Call::find:
        return finish(map_.find(key, which_.promise, style));
      case Call::erase:
        return finish(map_.erase(key, which_.promise, style));
      case Call::push:
        return finish(queue_.push(key, which_.promise, style));
      case Call::pop:
        return finish(queue_.pop(which_.promise, style));
    }
  }

 private:
  template <class Operation>
  static void finish(Operation operation) {
    demand(operation);
  }
};

/// Calls of all rounds are on different keys, as far as they go.
Batches plan_of(const RealNetwork& network, const Effort& effort) {
  const std::uint32_t per_batch = std::min(network.trips_per_batch, 64U);
  Batches plan = effort.plan(50, per_batch);
  const std::uint64_t most = CallTarget::kKeys / (3 * (std::uint64_t{effort.rounds} + 1));
  plan.batches = std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.batches, most / plan.per_batch)));
  return plan;
}

void measure(Team& team, const Group& group, const RealNetwork& network, const Effort& effort,
             const CallCase& which) {
  const Batches plan = plan_of(network, effort);
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    Caller caller(pair, which);
    caller.get_ready(pair, network.passive_target && !effort.quick);
    const ComponentCosts costs = pair.costs(effort.quick);
    const Situation situation{.promise = which.promise,
                              .load = 0.5 * CallTarget::kKeys / CallTarget::kSlots,
                              .bytes = BareContainer::kSlotBytes};
    const auto timed = [&](bool ours, std::function<void()> once) {
      return [&, ours, once = std::move(once)] {
        return pair.turn([&] {
          caller.prepare(plan.total(), ours);
          const double ns = batch_ns(plan, once);
          caller.after(plan.total(), ours);
          return ns;
        });
      };
    };
    const auto told = [&](Style style) {
      return [&, style]() -> std::optional<double> {
        if (me.rank() != 0) return std::nullopt;
        Situation here = situation;
        here.used_lately = style == Style::one_sided && which.call != Call::insert;  // by prepare()
        return predict_ns(costs, which.call, style, here);
      };
    };
    alternate(me, effort.rounds,
              {timed(false, [&] { caller.bare_once(); }),
               timed(true, [&] { caller.once(Style::one_sided); }),
               timed(true, [&] { caller.once(Style::message); }), told(Style::one_sided),
               told(Style::message)});
  });
}

std::vector<Result> results_of(const RealNetwork& network, const Effort& effort,
                               const CallCase& which) {
  const Group group(network, effort);
  Team team(group.team());
  measure(team, group, network, effort, which);
  std::vector<Result> results;
  const auto add = [&](Style style, std::uint32_t series, const char* limit,
                       std::uint32_t limit_series) -> Result& {
    return results.emplace_back(
        compared({.params = {{"call", std::string(name_of(which.call))},
                             {"promise", std::string(name_of(which.promise))},
                             {"style", std::string(name_of(style))}},
                  .unit = "ns"},
                 team.series(series), limit, team.series(limit_series)));
  };
  Result& bare = add(Style::one_sided, of_one_sided, "the bare sequence", of_bare);
  bare.goal = goal_on_shm(network, most_ratio(which.call));
  add(Style::one_sided, of_one_sided, "its prediction", predicted_one_sided);
  add(Style::message, of_message, "its prediction", predicted_message);
  return results;
}

}  // namespace

Experiment container_calls(const RealNetwork& network) {
  return {.name = "calls",
          .title = "a call, one after the other; components for predictions are measured before",
          .fabric = network.name,
          .run = on_network(network, for_settings(kCallCases, results_of))};
}

}  // namespace dunlin::bench
