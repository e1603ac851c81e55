#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "bench/container/call_target.hpp"
#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr double kMostRatio = 1.25;
constexpr std::uint32_t kSlots = 1U << 19;
constexpr std::uint32_t kKeys = 1U << 16;

Result measure_finds(const RealNetwork& network, const Effort& effort, Promise promise) {
  const Batches plan = effort.plan(100, network.trips(16));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    BenchMap map(pair.containers(), {.name = "map", .slots = kSlots, .style = Style::one_sided});
    BareContainer bare(pair.node(), kSlots);
    while (!bare.connected()) pair.containers().poll();
    pair.meet();
    const std::uint32_t count = effort.quick ? 1024 : kKeys;
    const std::vector<std::uint64_t> keys = keys_of_holder(map, count);
    if (me.rank() == 0) {
      std::vector<std::pair<std::uint64_t, std::uint64_t>> elements;
      for (const std::uint64_t key : keys) elements.emplace_back(key, key);
      if (map.insert_many(elements) != remote::Status::ok) throw Error("bench: the map is full");
      for (std::uint32_t slot = 0; slot < kSlots && network.passive_target; slot += 64)
        bare.find(slot);  // each page is mapped the first time that it is used
    }
    pair.meet();
    std::array<std::uint64_t, kAtOnce> wanted;
    std::array<Found<std::uint64_t>, kAtOnce> found;
    std::uint64_t next = 0;
    const auto finds = [&] {
      for (std::uint64_t& key : wanted) key = keys[next++ * 7919 % count];
      static_cast<void>(map.find_many(wanted, found, promise));
      for (const auto& one : found)
        if (!one.found()) throw Error("bench: a key is lost");
    };
    const auto reads = [&] {
      std::array<std::uint32_t, kAtOnce> where;
      for (std::uint32_t& slot : where) {
        const std::uint64_t key = keys[next++ * 7919 % count];
        slot = container::scale(static_cast<std::uint32_t>(container::hash_of(&key, sizeof key)),
                                kSlots);
      }
      bare.find_many(where);
    };
    alternate(me, effort.rounds,
              {timed(pair, plan, reads, kAtOnce), timed(pair, plan, finds, kAtOnce)});
  });
  return compared({.params = {{"call", "find"}, {"promise", std::string(name_of(promise))}},
                   .unit = "ns",
                   .goal = goal_on_shm(network, kMostRatio)},
                  team.series(1), "bare random reads, one batch", team.series(0));
}

// --- calls that change something -----------------------------------------------------------------

/// 32 elements can also be one call.
struct ManyCase {
  CallCase which;
  bool is_bulk;
};
constexpr std::array kCases{ManyCase{{Call::insert, Promise::both}, false},
                            ManyCase{{Call::insert, Promise::writes}, false},
                            ManyCase{{Call::assign, Promise::both}, false},
                            ManyCase{{Call::assign, Promise::both}, true},
                            ManyCase{{Call::erase, Promise::both}, false},
                            ManyCase{{Call::erase, Promise::both}, true},
                            ManyCase{{Call::push, Promise::both}, false},
                            ManyCase{{Call::push, Promise::both}, true},
                            ManyCase{{Call::pop, Promise::both}, true}};

class ManyCaller : public CallTarget {
 public:
  ManyCaller(ContainerPair& pair, const ManyCase& many)
      : CallTarget(pair, many.which), is_bulk_(many.is_bulk) {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      if (on_queue(which_.call))
        all_.emplace_back(&pushes_.emplace_back());
      else
        all_.emplace_back(&operations_.emplace_back());
    }
  }
  void bare_once() {
    std::array<std::uint32_t, kAtOnce> where;
    for (std::uint32_t& slot : where) {
      slot = next_slot();
      if (on_queue(which_.call)) slot = turn();  // one behind the other
    }
    switch (which_.call) {
      case Call::insert:
        return which_.promise == Promise::both ? bare_.insert_many(where)
                                               : bare_.insert_many_as_ready(where);
      case Call::assign:
        return bare_.assign_many(where);
      case Call::erase:
        return bare_.erase_many(where);
      case Call::push:
        return is_bulk_ ? bare_.push_row(where[0], kAtOnce) : bare_.push_many(where);
      default:
        return bare_.pop_row(where[0], kAtOnce);
    }
  }
  void once() {
    if (is_bulk_ && on_queue(which_.call)) return move_all();
    if (is_bulk_ || which_.call == Call::insert) return change_all();
    for (std::size_t i = 0; i < kAtOnce; ++i) begin(i);
    remote::wait_all(all_, remote::kForever);
    bool well = true;
    for (const BenchMap::Operation& operation : operations_) well = well && operation.ok();
    for (const BenchQueue::Push& operation : pushes_) well = well && operation.ok();
    if (!well) throw Error("bench: a call ended badly");
  }

 private:
  void begin(std::size_t i) {
    const std::uint64_t key = next_key();
    const Call call = which_.call;
    if (on_queue(call))
      pushes_[i] = queue_.push(key, which_.promise, Style::one_sided);
    else
      begin_map_call(map_, operations_[i], call, key, call == Call::insert ? key : turn(),
                     which_.promise, Style::one_sided);
  }
  void change_all() {
    std::array<std::pair<std::uint64_t, std::uint64_t>, kAtOnce> elements;
    std::array<std::uint64_t, kAtOnce> keys;
    for (std::size_t i = 0; i < kAtOnce; ++i) elements[i] = {keys[i] = next_key(), turn()};
    remote::Status status = remote::Status::ok;
    if (which_.call == Call::erase)
      status = map_.erase_many(keys, which_.promise, Style::one_sided);
    else if (which_.call == Call::assign)
      status = map_.assign_many(elements, which_.promise, Style::one_sided);
    else
      status = map_.insert_many(elements, which_.promise, Style::one_sided);
    if (status != remote::Status::ok) throw Error("bench: keys cannot be changed");
  }
  void move_all() {
    std::array<std::uint64_t, kAtOnce> elements{};
    std::size_t count = kAtOnce;
    const remote::Status status =
        which_.call == Call::push
            ? queue_.push_many(elements, which_.promise, Style::one_sided)
            : queue_.pop_many(elements, count, which_.promise, Style::one_sided);
    if (status != remote::Status::ok || count != kAtOnce)
      throw Error("bench: elements cannot be pushed or popped");
  }

  bool is_bulk_;
  std::deque<BenchMap::Operation> operations_;
  std::deque<BenchQueue::Push> pushes_;
  std::vector<remote::CallBase*> all_;
};

Result measure_calls(const RealNetwork& network, const Effort& effort, const ManyCase& many) {
  Batches plan = effort.plan(20, std::max(network.trips_per_batch / 64, 1U));
  const std::uint64_t keys = CallTarget::kKeys / (2 * (std::uint64_t{effort.rounds} + 1));
  plan.batches = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(keys / kAtOnce / plan.per_batch, 1, plan.batches));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    ManyCaller caller(pair, many);
    caller.get_ready(pair, network.passive_target && !effort.quick);
    const auto turn = [&](bool ours, auto once) {
      return [&, ours, once] {
        return pair.turn([&] {
          caller.prepare(plan.total() * kAtOnce, ours);
          const double ns = batch_ns(plan, once) / kAtOnce;
          caller.after(plan.total() * kAtOnce, ours);
          return ns;
        });
      };
    };
    alternate(me, effort.rounds,
              {turn(false, [&] { caller.bare_once(); }), turn(true, [&] { caller.once(); })});
  });
  return compared(
      {.params = {{"call", std::string(name_of(many.which.call)) + (many.is_bulk ? "_many" : "")},
                  {"promise", std::string(name_of(many.which.promise))}},
       .unit = "ns",
       .goal = goal_on_shm(network, kMostRatio)},
      team.series(1), "the bare sequence, a batch for each step", team.series(0));
}

}  // namespace

Experiment calls_in_flight(const RealNetwork& network) {
  return {
      .name = "in flight",
      .title = "32 calls at once, for one of them",
      .fabric = network.name,
      .run = [finds =
                  on_network(network, for_settings({Promise::both, Promise::reads}, measure_finds)),
              calls = on_network(network, for_settings(kCases, measure_calls))](
                 const Effort& effort) { return joined<Result>(finds(effort), calls(effort)); }};
}

}  // namespace dunlin::bench
