#include "routing/paths.hpp"

#include <gtest/gtest.h>

#include "networks.hpp"
#include "routing/events.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

/// Lengths by Bellman and Ford's method, which shares nothing with the one under test.
std::vector<Length> brute_force(const Topology& net, const std::vector<Cost>& costs,
                                RouterId from) {
  std::vector<Length> length(net.size(), kUnreachable);
  length[from] = 0;
  for (std::uint32_t round = 0; round < net.size(); ++round) {
    for (ArcId arc = 0; arc < net.arcs.size(); ++arc) {
      const auto [tail, head, slot, link] = net.arcs[arc];
      if (length[tail] == kUnreachable || costs[arc] == kNoLink) continue;
      length[head] = std::min(length[head], length[tail] + length_of_link(costs[arc]));
    }
  }
  return length;
}

std::vector<Length> copy(std::span<const Length> lengths) {
  return {lengths.begin(), lengths.end()};
}

TEST(Paths, AreTheShortestAndNameTheFirstStep) {
  const Topology square = from_json(kSquare);
  Paths paths(square, 0);
  paths.compute(square.arc_costs());
  EXPECT_EQ(cost_of(paths.length()[3]), 3'500'000U);
  EXPECT_EQ(links_of(paths.length()[3]), 3U);
  EXPECT_EQ(paths.next_hop()[3], 1);
  EXPECT_EQ(paths.next_hop()[0], kNoRouter);
}

TEST(Paths, PreferFewerLinksAmongEqualCosts) {
  const Topology net = from_json(R"({"nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [
      {"source": 0, "target": 1, "dist": 0}, {"source": 1, "target": 2, "dist": 0},
      {"source": 0, "target": 2, "dist": 0}]})");
  Paths paths(net, 0);
  paths.compute(net.arc_costs());
  EXPECT_EQ(paths.next_hop()[2], 2);
}

TEST(Paths, LeaveOutWhatCannotBeReached) {
  const Topology square = from_json(kSquare);
  std::vector<Cost> costs(square.arcs.size(), kNoLink);
  Paths paths(square, 2);
  paths.compute(costs);
  EXPECT_EQ(paths.length()[0], kUnreachable);
  EXPECT_EQ(paths.next_hop()[0], kNoRouter);
  EXPECT_EQ(paths.length()[2], 0U);
}

TEST(Bands, TellWhichChangesMatter) {
  const Topology square = from_json(kSquare);
  Paths paths(square, 0);
  paths.compute(square.arc_costs());
  const Band direct = paths.bands()[1];  // a -> d, off the path of cost 3.5 and three links
  EXPECT_TRUE(direct.holds(kNoLink));
  EXPECT_TRUE(direct.holds(20 * kCostUnit));
  EXPECT_TRUE(direct.holds(3'500'001));
  EXPECT_FALSE(direct.holds(3'500'000)) << "as cheap, and fewer links";
  const Band used = paths.bands()[0];  // a -> b, on every path
  EXPECT_TRUE(used.holds(1'500'000));
  EXPECT_FALSE(used.holds(1'499'999));
  EXPECT_FALSE(used.holds(1'500'001));
  EXPECT_FALSE(used.holds(kNoLink));
}

TEST(Paths, SurviveTheHighestCostsOnTheLongestPath) {
  RawGraph raw;
  raw.cost_attribute = "dist";
  for (std::uint32_t r = 0; r < kMaxRouters; ++r) {
    raw.nodes.push_back({std::to_string(r), "", {}, ""});
    if (r > 0) raw.links.push_back({std::to_string(r - 1), std::to_string(r), 1e8, "", ""});
  }
  const Topology line = build_topology(raw, {});
  Paths paths(line, 0);
  paths.compute(line.arc_costs());
  EXPECT_EQ(cost_of(paths.length()[kMaxRouters - 1]), kMaxCost * (kMaxRouters - 1));
  EXPECT_EQ(links_of(paths.length()[kMaxRouters - 1]), kMaxRouters - 1);
}

/// The promise of the bands, held against brute force over random changes, several at once: they
/// never miss one that makes the paths wrong, and rarely ask for a computation in vain.
TEST(Bands, NeverMissAChangeThatMatters) {
  std::mt19937_64 draw(20151);
  std::uint64_t skipped = 0;
  std::uint64_t in_vain = 0;
  std::uint64_t needed = 0;
  for (int network = 0; network < 60; ++network) {
    const auto routers = static_cast<std::uint32_t>(2 + draw() % 14);
    const Topology net =
        random_network(routers, static_cast<std::uint32_t>(draw() % (2 * routers)), draw);
    std::vector<Cost> costs = net.arc_costs();
    std::vector<Paths> all;
    for (RouterId r = 0; r < routers; ++r) all.emplace_back(net, r).compute(costs);
    for (int step = 0; step < 60; ++step) {
      for (std::uint64_t changes = 1 + draw() % 3; changes > 0; --changes) {
        costs[draw() % costs.size()] = draw() % 4 == 0 ? kNoLink : (draw() % 6) * kCostUnit;
      }
      for (Paths& paths : all) {
        bool hold = true;
        for (ArcId arc = 0; arc < costs.size(); ++arc) {
          hold = hold && paths.bands()[arc].holds(costs[arc]);
        }
        const std::vector<Length> before = copy(paths.length());
        const std::vector<Length> right = brute_force(net, costs, paths.self());
        if (hold) {
          ++skipped;
          ASSERT_EQ(before, right) << "router " << paths.self() << " skipped in vain";
          continue;
        }
        paths.compute(costs);
        ASSERT_EQ(copy(paths.length()), right);
        ++(before == right ? in_vain : needed);
      }
    }
  }
  RecordProperty("skipped", std::to_string(skipped));
  RecordProperty("needed", std::to_string(needed));
  RecordProperty("in_vain", std::to_string(in_vain));
  EXPECT_GT(skipped, needed / 10);
  EXPECT_LT(in_vain, needed / 5) << "only a lost path with an equal replacement may be in vain";
}

TEST(Paths, AreAFunctionOfTheCosts) {
  std::mt19937_64 draw(7);
  const Topology net = random_network(20, 40, draw);
  Paths fresh(net, 3);
  Paths used(net, 3);
  for (const LinkEvent& event : random_events(net, 5, 1)) {
    std::vector<Cost> costs = net.arc_costs();
    for (const Change& change : event.changes) costs[change.arc] = change.cost;
    used.compute(costs);
  }
  fresh.compute(net.arc_costs());
  used.compute(net.arc_costs());
  EXPECT_TRUE(
      std::equal(fresh.next_hop().begin(), fresh.next_hop().end(), used.next_hop().begin()));
  EXPECT_TRUE(std::equal(fresh.bands().begin(), fresh.bands().end(), used.bands().begin()));
}

}  // namespace
