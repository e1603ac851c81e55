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
/// Table 2 of DDSS: what its daemon takes more.
constexpr double kPublishedNs = 10'000;
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
  /// Answers a request that has come.
  void answer() {
    if (node_.word(kRingsAt) > trips_) {
      attached::Request reply{.number = ++trips_};
      send(0, reply);
    }
    node_.poll();
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
  const Batches plan = effort.plan(100, network.trips(4));
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
    BareRing bare(here.node);
    SegmentOperation direct;
    std::vector<std::uint64_t> words(kDaemonAtOnce);
    std::deque<SegmentOperation> operations;
    std::vector<remote::CallBase*> all;
    if (client)
      for (std::size_t i = 0; i < kDaemonAtOnce; ++i) all.push_back(&operations.emplace_back());
    const auto get_directly = [&] {
      direct = here.space.get(key, bytes_of(words[0]));
      demand(direct);
    };
    const auto get = [&] {
      operations[0] = client->get(key, bytes_of(words[0]));
      demand(operations[0]);
    };
    const auto get_many = [&] {
      for (std::size_t i = 0; i < kDaemonAtOnce; ++i)
        operations[i] = client->get(key, bytes_of(words[i]), i * 8);
      remote::wait_all(all, remote::kForever);
      for (SegmentOperation& operation : operations) demand(operation);
    };
    const auto turn = [&](const auto& once, double at_once = 1) {
      return one_sided(me, here.node, serve, [&] { return batch_ns(plan, once) / at_once; });
    };
    alternate(me, effort.rounds,
              {[&] {
                 return one_sided(
                     me, here.node, serve,
                     [&] { return batch_ns(plan, [&] { bare.go_and_come(); }); },
                     [&] { bare.answer(); });
               },
               [&] { return turn(get_directly); }, [&] { return turn(get); },
               [&] { return turn(get_many, kDaemonAtOnce); }});
    me.meet(serve);
  });
  std::vector<double> more(team.series(daemon_get).size());
  for (std::size_t i = 0; i < more.size(); ++i)
    more[i] = team.series(daemon_get)[i] - team.series(direct_get)[i];
  return {compared({.params = {{"at once", 1.0}, {"bytes", 8.0}},
                    .unit = "ns",
                    .goal = Goal{.bound = kMostRingTrips},
                    .published = kPublishedNs,
                    .note = "Published: 12 us where the call is asynchronous and then waited for, "
                            "as each call is here."},
                   more, "a bare trip through the rings", team.series(ring_trip)),
          {.params = {{"at once", double(kDaemonAtOnce)}, {"bytes", 8.0}},
           .unit = "ns",
           .value = summarize(team.series(gets_at_once)),
           .goal = Goal{.on = Goal::On::value, .bound = kMostNsAtOnce}}};
}

}  // namespace

Experiment daemon_trips() {
  return {.name = "daemon",
          .title =
              "A get under null through the daemon: what it takes more than a direct one, and one "
              "of 32 at once (table 2)",
          .fabric = "shm",
          .x = "at once",
          .run = measure_daemon};
}

}  // namespace dunlin::bench
