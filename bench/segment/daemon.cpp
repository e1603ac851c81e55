#include <cstddef>
#include <deque>
#include <vector>

#include <dunlin/daemon.hpp>

#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"
#include "daemon/layout.hpp"

/// What the daemon costs: member 1 serves, and member 0, which could get by itself, is its client.
namespace dunlin::bench {
namespace {

constexpr std::size_t kDaemonAtOnce = 32;
constexpr double kMostRingTrips =
    1.3;                               // that a get through the daemon takes more than a direct one
constexpr double kMostNsAtOnce = 200;  // 5 million gets a second
constexpr std::uint64_t kRingsAt = kRoom;  // in a Node's box: of one request, or one reply

enum DaemonSeries : std::uint32_t { ring_trip, direct_get, daemon_get, gets_at_once };

/// A request and a reply, by writes of the fabric into the other's memory, and nothing else.
class BareRing {
 public:
  explicit BareRing(Node& node) : node_(node) {}
  void go_and_come() {
    attached::Request request{.number = ++trips_};
    send(1, request);
    wait();
  }
  /// Until the other ends the turn.
  void answer(std::uint64_t turns) {
    while (node_.word(kOver) < turns) {
      if (node_.word(kRingsAt) > trips_) {
        attached::Request reply{.number = ++trips_};
        send(0, reply);
      }
      node_.poll();
    }
  }

 private:
  /// In ascending order of its words but for the first, as in a ring.
  void send(Rank to, attached::Request& entry) {
    auto* const bytes = reinterpret_cast<std::byte*>(&entry);
    node_.post(write(to, node_.box(), kRingsAt + 8, bytes + 8, sizeof entry - 8));
    node_.post(write(to, node_.box(), kRingsAt, bytes, 8));
  }
  void wait() {
    while (node_.word(kRingsAt) < trips_) node_.poll();
  }

  Node& node_;
  std::uint64_t trips_ = 0;
};

std::vector<Result> measure_daemon(const Effort& effort) {
  const RealNetwork& network = real_network("shm");
  const Batches plan = effort.plan(100, std::max(network.trips_per_batch / 4, 2U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentNode here(group.join(me.rank()));
    connect(me, here.node);
    const std::string name = here.node.fabric().group();
    std::unique_ptr<Daemon> daemon;
    if (me.rank() == 1) daemon = std::make_unique<Daemon>(here.space, DaemonOptions{.group = name});
    const auto serve = [&] { daemon ? daemon->poll() : here.poll(); };
    me.meet(serve);
    std::unique_ptr<SegmentSpace> client;
    Key key;
    if (me.rank() == 0) {
      auto made = here.space.allocate({.bytes = 8 * kDaemonAtOnce,
                                       .coherence = Coherence::null,
                                       .placement = Placement::on(1)});
      demand(made);
      key = made.result().key;
      client = attach({.group = name});
    }
    me.meet(serve);
    std::uint64_t turns = 0;
    const auto turn = [&](auto&& measure, auto&& wait_for_end) -> std::optional<double> {
      return take_turn(me, serve, [&]() -> std::optional<double> {
        ++turns;
        if (me.rank() != 0) {
          wait_for_end();
          return std::nullopt;
        }
        const double measured = measure();
        here.node.end_turn(1);
        return measured;
      });
    };
    const auto serve_turn = [&] {
      while (here.node.word(kOver) < turns) serve();
    };
    BareRing bare(here.node);
    SegmentOperation direct(here.space);
    std::vector<std::uint64_t> words(kDaemonAtOnce);
    std::deque<SegmentOperation> operations;
    std::vector<remote::InFlight*> all;
    if (client)
      for (std::size_t i = 0; i < kDaemonAtOnce; ++i)
        all.push_back(&operations.emplace_back(*client));
    const auto get_directly = [&] {
      here.space.get(direct, key, bytes_of(words[0]));
      demand(direct);
    };
    const auto get = [&] {
      client->get(operations[0], key, bytes_of(words[0]));
      demand(operations[0]);
    };
    const auto get_many = [&] {
      for (std::size_t i = 0; i < kDaemonAtOnce; ++i)
        client->get(operations[i], key, bytes_of(words[i]), i * 8);
      remote::wait_all(all, remote::kForever);
      for (SegmentOperation& operation : operations) demand(operation);
    };
    const auto timed = [&](auto&& once) { return [&, once] { return batch_ns(plan, once); }; };
    alternate(
        me, effort.rounds,
        {[&] { return turn(timed([&] { bare.go_and_come(); }), [&] { bare.answer(turns); }); },
         [&] { return turn(timed(get_directly), serve_turn); },
         [&] { return turn(timed(get), serve_turn); },
         [&] {
           return turn([&] { return batch_ns(plan, get_many) / kDaemonAtOnce; }, serve_turn);
         }});
    me.meet(serve);
  });
  std::vector<double> more(team.series(daemon_get).size());
  for (std::size_t i = 0; i < more.size(); ++i)
    more[i] = team.series(daemon_get)[i] - team.series(direct_get)[i];
  Result one{.name = "daemon", .params = {{"at once", 1.0}, {"bytes", 8.0}}, .unit = "ns"};
  compare(one, more, "a bare trip through the rings", team.series(ring_trip));
  one.goal = Goal{.on = Goal::On::ratio, .bound = kMostRingTrips};
  Result many{.name = "daemon",
              .params = {{"at once", double(kDaemonAtOnce)}, {"bytes", 8.0}},
              .unit = "ns"};
  many.value = summarize(team.series(gets_at_once));
  many.goal = Goal{.on = Goal::On::value, .bound = kMostNsAtOnce};
  return {one, many};
}

}  // namespace

Experiment daemon_trips() {
  return {.name = "daemon",
          .title =
              "A get under null through the daemon: what it takes more than a direct one, and one "
              "of 32 at once",
          .fabric = "shm",
          .x = "at once",
          .run = measure_daemon};
}

}  // namespace dunlin::bench
