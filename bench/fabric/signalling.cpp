#include <array>
#include <utility>

#include <dunlin/run.hpp>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 6> kSizes{8, 64, 1024, 4096, 10'240, 65'536};

/// Two members that put so many bytes into each other's memory, and then signal it.
class PingPong {
 public:
  PingPong(Node& node, std::size_t bytes) : node_(node), from_(bytes, std::byte{1}) {}

  /// Half a round trip. `await(value)` returns when our signal has grown to that.
  template <class Await>
  std::optional<double> round(const Batches& plan, Await&& await) {
    if (node_.fabric().rank() == 0) {
      return batch_ns(plan,
                      [&] {
                        ++value_;
                        signal(1);
                        await(value_);
                      }) /
             2;
    }
    for (std::uint64_t i = 0; i < plan.total(); ++i) {
      await(++value_);
      signal(0);
    }
    return std::nullopt;
  }

 private:
  void signal(Rank to) {
    const Operation batch[] = {put(to, node_.box(), kRoom, from_.data(), from_.size()),
                               write(to, node_.box(), kSignal, &value_, sizeof value_)};
    node_.post(batch);
  }

  Node& node_;
  std::vector<std::byte> from_;
  std::uint64_t value_ = 0;
};

/// A part of a Loop: what arrives where no poll() sees it is something to do as well.
class Watcher {
 public:
  explicit Watcher(Node& node) : node_(node) {}
  std::size_t poll() {
    const std::size_t handled = node_.poll();
    const std::uint64_t before = std::exchange(seen_, node_.word(kSignal));
    return handled + (seen_ != before ? 1 : 0);
  }

 private:
  Node& node_;
  std::uint64_t seen_ = 0;
};

Result signalled(const RealNetwork& network, const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips(bytes <= 10'240 ? 1 : 10));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    Node node(group.join(me.rank()));
    const auto bare = group.bare(me, &node.fabric());
    connect(me, node);
    PingPong game(node, bytes);
    alternate(me, effort.rounds,
              {[&] { return bare->one_way(me, plan, bytes); },
               [&] {
                 return take_turn(me, node, [&] {
                   return game.round(plan,
                                     [&](std::uint64_t value) { node.await(kSignal, value); });
                 });
               }});
  });
  return compared({.params = {{"bytes", double(bytes)}},
                   .unit = "ns",
                   .goal = ratio_goal(bytes == 8 ? network.goals.detection_ratio : std::nullopt)},
                  team.series(1), network.bare_name + ", one way", team.series(0));
}

Result signalled_asleep(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, 4);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    Node node(group.join(me.rank()));
    const auto bare = group.bare(me, &node.fabric());
    connect(me, node);
    PingPong game(node, 8);
    Loop loop(node.fabric(), {.wait = Wait::block});
    Watcher watcher(node);
    loop.add(watcher);
    const auto sleep_until = [&](std::uint64_t value) {
      const auto timeout_ms = static_cast<std::uint32_t>(effort.timeout.count());
      if (!loop.run_until([&] { return node.word(kSignal) >= value; }, timeout_ms))
        throw Error("bench: nothing arrived that would wake a sleeper");
    };
    alternate(me, effort.rounds,
              {[&] { return bare->asleep(me, plan); },
               [&] { return take_turn(me, node, [&] { return game.round(plan, sleep_until); }); }});
  });
  return compared(
      {.params = {{"bytes", 8.0}}, .unit = "ns", .goal = ratio_goal(network.goals.sleeping_ratio)},
      team.series(1), network.bare_name + ", asleep", team.series(0));
}

}  // namespace

Experiment signalling(const RealNetwork& network) {
  return {.name = "put-signal",
          .title =
              "from a put with its signal until the peer, which polls, sees it: half a round "
              "trip",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings(kSizes, signalled))};
}

std::vector<Experiment> signalling_asleep(const RealNetwork& network) {
  // Waking by shared memory is a figure of `dunlin bench table` (idle).
  if (network.is_shm()) return {};
  return {{.name = "put-signal-asleep",
           .title = "the same between two members that sleep until something comes (Wait::block)",
           .fabric = network.name,
           .run = on_network(network, signalled_asleep)}};
}

}  // namespace dunlin::bench
