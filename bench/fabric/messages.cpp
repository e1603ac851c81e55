#include <array>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kChannel = 1;

/// Member 1's handler sends back what it gets.
class Echo {
 public:
  explicit Echo(Node& node) : node_(node) {
    node.fabric().receive(kChannel, [this](Rank from, std::span<const std::byte> message) {
      ++heard_;
      if (node_.fabric().rank() != 0) send(from, message);
    });
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() { node_.fabric().receive(kChannel, nullptr); }

  std::optional<double> round(const Batches& plan, std::span<const std::byte> message) {
    if (node_.fabric().rank() != 0) {
      expected_ += plan.total();  // the first may have come before our turn began
      while (heard_ < expected_) node_.poll();
      return std::nullopt;
    }
    return batch_ns(plan, [&] {
      const std::uint64_t before = heard_;
      send(1, message);
      while (heard_ == before) node_.poll();
    });
  }

 private:
  /// One is under way at a time, so there is room.
  void send(Rank to, std::span<const std::byte> message) {
    if (node_.fabric().send(to, kChannel, message) != Refusal::none) ++refused_;
  }

  Node& node_;
  std::uint64_t heard_ = 0;
  std::uint64_t expected_ = 0;  // of all turns so far
  std::uint64_t refused_ = 0;
};

Result message(const RealNetwork& network, const Effort& effort, std::size_t bytes) {
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    Node node(group.join(me.rank()));
    const auto bare = group.bare(me, &node.fabric());
    Echo echo(node);
    connect(me, node);
    const std::vector<std::byte> content(bytes, std::byte{1});
    alternate(me, effort.rounds,
              {[&] {
                 std::optional<double> time = bare->one_way(me, plan, bytes);
                 if (time) *time *= 2;
                 return time;
               },
               [&] { return take_turn(me, node, [&] { return echo.round(plan, content); }); }});
  });
  return compared({.params = {{"bytes", double(bytes)}}, .unit = "ns"}, team.series(1),
                  network.bare_name + ", round trip", team.series(0));
}

}  // namespace

Experiment messages(const RealNetwork& network) {
  return {.name = "message",
          .title = "a message to the peer's handler, and the handler's answer: a round trip",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings({std::size_t{8}, kMaxMessageBytes}, message))};
}

}  // namespace dunlin::bench
