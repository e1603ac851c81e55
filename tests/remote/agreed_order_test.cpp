#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/remote.hpp>

#include "remote/fixed_agreement.hpp"
#include "support/agreed_history.hpp"
#include "support/cluster.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// The order of a fixed list of members. (tests/multicast/group_order_test.cpp has that of a
/// group.)
namespace dunlin::remote {
namespace {

using test::AgreedHistory;
using test::Proposed;

struct NoOptions {};

struct OrderMember {
  OrderMember(Fabric& its_fabric, const NoOptions& /*unused*/) : progress(its_fabric) {}
  std::size_t poll() { return progress.poll() + order->poll(); }
  /// As many as are taken.
  void propose(std::uint32_t many) {
    const Rank rank = progress.fabric().rank();
    while (many-- > 0 && test::propose(*order, {rank, taken})) ++taken;
  }

  Progress progress;
  AgreedHistory history;
  std::unique_ptr<AgreedOrder> order = progress.open_order({.name = "agreed"}, history);
  std::uint32_t taken = 0;
};

using OrderCluster = test::Cluster<OrderMember, NoOptions>;

/// REM-21, and that nothing comes twice: the numbers of each member, from 0 on.
void expect_each_in_turn(const std::vector<std::string>& lines) {
  std::array<std::uint32_t, 16> next{};
  for (const std::string& line : lines) {
    if (line.starts_with("members")) continue;
    const auto by = static_cast<std::size_t>(std::stoul(line));
    EXPECT_EQ(line, std::to_string(by) + ": " + std::to_string(next.at(by))) << "REM-19, REM-21";
    ++next.at(by);
  }
}

class OrderOnClusters : public testing::TestWithParam<test::ClusterBackend<OrderCluster>> {};
INSTANTIATE_TEST_SUITE_P(On, OrderOnClusters,
                         testing::ValuesIn(test::cluster_backends<OrderCluster>()),
                         [](const auto& one) { return one.param.name; });

TEST_P(OrderOnClusters, IsTheSameAtAllMembers) {
  if (const std::string why = GetParam().why_not(); !why.empty()) GTEST_SKIP() << why;
  const auto members = GetParam().start(3, {});
  ASSERT_TRUE(members->until([&] {
    for (Rank rank = 0; rank < 3; ++rank)
      if ((*members)[rank].taken < 100) (*members)[rank].propose(100 - (*members)[rank].taken);
    return std::ranges::all_of(std::array{0, 1, 2}, [&](int rank) {
      return (*members)[static_cast<Rank>(rank)].history.lines.size() == 301;
    });
  }));
  EXPECT_EQ((*members)[0].history.lines.front(), "members 0 1 2");
  EXPECT_EQ((*members)[1].history.lines, (*members)[0].history.lines) << "REM-19";
  EXPECT_EQ((*members)[2].history.lines, (*members)[0].history.lines) << "REM-19";
  expect_each_in_turn((*members)[0].history.lines);
}

/// Members in the simulator, of which some open the order late, or die.
struct Ordered {
  explicit Ordered(std::uint32_t members, std::uint64_t seed = 1,
                   const sim::Profile& profile = sim::profile("ib100"))
      : world(profile, members, seed), nodes(members) {
    for (Rank rank = 0; rank < members; ++rank)
      world.attach(rank,
                   [this, rank] { return nodes[rank] ? nodes[rank]->poll() : std::size_t{0}; });
  }
  ~Ordered() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) world.detach_all(rank);
    nodes.clear();
  }
  void open(Rank rank) {
    world.on(rank, [this, rank] {
      nodes[rank] = std::make_unique<OrderMember>(world.fabric(rank), NoOptions{});
    });
  }
  void propose(Rank rank, std::uint32_t many) {
    world.on(rank, [this, rank, many] {
      if (nodes[rank]) nodes[rank]->propose(many);
    });
  }
  [[nodiscard]] const std::vector<std::string>& lines(Rank rank) const {
    return nodes[rank]->history.lines;
  }
  sim::World world;
  std::vector<std::unique_ptr<OrderMember>> nodes;
};

TEST(OrderInSimulator, WaitsForAMemberThatOpensItLate) {
  Ordered group(3);
  group.open(0);
  group.open(1);
  group.world.run_for(100'000);
  group.propose(1, 5);
  group.world.run_for(1'000'000);
  EXPECT_EQ(group.lines(0).size(), 1) << "REM-20: member 2 does not have them yet";
  group.open(2);
  group.world.run_for(1'000'000);
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(group.lines(rank).size(), 6);
    expect_each_in_turn(group.lines(rank));
  }
}

TEST(OrderInSimulator, TakesNoMoreProposalsThanItHasRoomFor) {
  Ordered group(2);
  group.open(0);
  group.world.run_for(100'000);
  group.propose(0, 1'000);
  group.world.run_for(100'000);
  EXPECT_EQ(group.nodes[0]->taken, FixedAgreement::kMostUnderWay) << "member 1 is not there";
  group.open(1);
  group.world.run_for(1'000'000);
  EXPECT_EQ(group.lines(1).size(), 1 + FixedAgreement::kMostUnderWay);
  group.propose(0, 1);
  group.world.run_for(1'000'000);
  EXPECT_EQ(group.lines(1).size(), 2 + FixedAgreement::kMostUnderWay);
}

TEST(OrderInSimulator, StopsWhenAProposerDiesAtAnyMoment) {
  for (std::uint64_t ns = 0; ns < 12'000; ns += 250) {
    SCOPED_TRACE(ns);
    Ordered group(3);
    for (Rank rank = 0; rank < 3; ++rank) group.open(rank);
    group.world.run_for(100'000);
    const auto proposer = static_cast<Rank>(ns / 250 % 3);
    group.propose(proposer, 2);
    group.world.run_for(ns);
    group.world.crash(proposer);
    group.world.run_for(20'000'000);
    const Rank one = (proposer + 1) % 3, other = (proposer + 2) % 3;
    group.propose(one, 1);
    group.world.run_for(1'000'000);
    EXPECT_EQ(group.nodes[one]->taken, 0U) << "a fixed list does not go on without a member";
    std::vector<std::string> most = group.lines(proposer);
    for (const Rank rank : {one, other})
      if (group.lines(rank).size() > most.size()) most = group.lines(rank);
    EXPECT_LE(most.size(), 3U);
    for (const Rank rank : {proposer, one, other}) {
      const std::vector<std::string>& lines = group.lines(rank);
      EXPECT_TRUE(std::equal(lines.begin(), lines.end(), most.begin())) << "REM-19";
    }
  }
}

/// A network that takes nobody for dead.
sim::Profile patient() {
  sim::Profile profile = sim::profile("ib100");
  profile.retry_timeout_ns = 1e9;
  profile.silence_timeout_ns = 0;
  return profile;
}

TEST(OrderInSimulator, IsOneForMembersThatPauseAndNetworksThatAreSlow) {
  test::for_each_seed(test::Seeds(test::rounds(400)), [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t limit) { return static_cast<Rank>(random() % limit); };
    const Rank members = 1 + below(6);
    Ordered group(members, seed, patient());
    for (Rank rank = 0; rank < members; ++rank) group.open(rank);
    for (Rank steps = 10 + below(40); steps > 0; --steps) {
      group.world.run_for(1 + below(20'000));
      const Rank rank = below(members), other = below(members);
      switch (below(6)) {
        case 0:
          group.world.pause(rank, below(400'000));
          break;
        case 1:
          if (rank != other) group.world.slow_link(rank, other, 1 + below(50));
          break;
        case 2:
          group.world.slow(rank, 1 + below(20));
          break;
        default:
          group.propose(rank, 1 + below(30));
      }
    }
    for (Rank rank = 0; rank < members; ++rank) {
      group.world.slow(rank, 1);
      for (Rank other = 0; other < members; ++other)
        if (rank != other) group.world.slow_link(rank, other, 1);
    }
    group.world.run_for(50'000'000);
    std::size_t taken = 1;
    for (const auto& node : group.nodes) taken += node->taken;
    for (Rank rank = 0; rank < members; ++rank) {
      ASSERT_EQ(group.nodes[rank]->progress.why_stopped(), "");
      ASSERT_EQ(group.nodes[rank]->order->why_stopped(), "");
      ASSERT_EQ(group.lines(rank).size(), taken) << "REM-21: at member " << rank;
      ASSERT_EQ(group.lines(rank), group.lines(0)) << "REM-19";
    }
    expect_each_in_turn(group.lines(0));
  });
}

TEST(Order, RefusesWhatNoMemberSends) {
  const auto fault = [](FixedAgreement::Header header, Rank from) {
    FixedAgreement agreement(7, 1, 3);
    return agreement.receive(from, std::as_bytes(std::span(&header, 1)));
  };
  using Kind = FixedAgreement::Header::Kind;
  EXPECT_EQ(fault({7, 1, 2, Kind::record}, 0), "");
  EXPECT_EQ(fault({8, 1, 2, Kind::record}, 0), "it has an order of another name on this channel");
  EXPECT_EQ(fault({7, 2, 2, Kind::record}, 0), "a record is not the next one");
  EXPECT_EQ(fault({7, 1, 2, Kind::record}, 2), "a record is not the next one");
  EXPECT_EQ(fault({7, 1, 3, Kind::record}, 0), "a record is not the next one");
  EXPECT_EQ(fault({7, 0, 2, Kind::proposal}, 2), "a proposal went to a wrong member");
  EXPECT_EQ(fault({7, 1, 0, Kind::decided}, 0), "records were decided that are not here");
  EXPECT_EQ(fault({7, 1, 0, Kind::has}, 0), "it says to have records that were not sent");
  EXPECT_EQ(fault({7, 1, 0, static_cast<Kind>(9)}, 0), "a message is of no known kind");
  EXPECT_EQ(FixedAgreement(7, 1, 3).receive(0, {}), "a message is too short");
}

TEST(Order, TwoNamesOnOneChannelAreNoticed) {
  sim::World world(sim::profile("ib100"), 2, 1);
  AgreedHistory history[2];
  std::unique_ptr<Progress> progress[2];
  std::unique_ptr<AgreedOrder> order[2];
  for (Rank rank = 0; rank < 2; ++rank) {
    progress[rank] = std::make_unique<Progress>(world.fabric(rank));
    order[rank] = progress[rank]->open_order({.name = rank == 0 ? "a" : "b"}, history[rank]);
    world.attach(rank, [&, rank] { return progress[rank]->poll() + order[rank]->poll(); });
  }
  world.run_for(100'000);
  world.on(1, [&] { EXPECT_TRUE(test::propose(*order[1], {1, 0})); });
  world.run_for(1'000'000);
  EXPECT_EQ(order[0]->why_stopped(),
            "order 'a': protocol error of member 1: it has an order of another name on this "
            "channel");
  EXPECT_FALSE(test::propose(*order[0], {0, 0}));
  EXPECT_THROW(static_cast<void>(order[1]->propose(std::vector<std::byte>(kMaxProposalBytes + 1))),
               Error);
  EXPECT_THROW(static_cast<void>(progress[0]->open_order({.name = "c"}, history[0])), Error);
  for (Rank rank = 0; rank < 2; ++rank) world.detach_all(rank);
}

}  // namespace
}  // namespace dunlin::remote
