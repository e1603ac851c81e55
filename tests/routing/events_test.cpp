#include "routing/events.hpp"

#include <gtest/gtest.h>

#include "networks.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

std::vector<LinkEvent> parse(const std::string& script) {
  static const Topology square = from_json(kSquare);
  return parse_script("events.txt", script, square);
}
std::string complaint_about(const std::string& script) {
  return complaint([&] { return parse(script); });
}

TEST(Script, ReadsChangesLossesAndReturns) {
  const Topology square = from_json(kSquare);
  const auto events = parse(
      "# a comment\n\ncost a Bern 12.5  # another\r\n"
      "down Bern \"New York\"\nup 7 b\ncost a -> d 1");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(describe(square, events[0]), "a – Bern: 1.5 → 12.5");
  EXPECT_EQ(events[0].changes.size(), 2U);
  EXPECT_EQ(describe(square, events[1]), "Bern – New York: 1 → lost");
  EXPECT_EQ(describe(square, events[2]), "Bern – New York: lost → 1");
  EXPECT_EQ(describe(square, events[3]), "a → d: 10 → 1");
  EXPECT_EQ(events[3].changes.size(), 1U);
}

TEST(Script, BringsALinkBackAtTheCostThatItHadOrAnother) {
  EXPECT_EQ(parse("cost a b 4\ndown a b\nup a b").back().after, 4 * kCostUnit);
  EXPECT_EQ(parse("down a b\nup a b 9").back().after, 9 * kCostUnit);
}

TEST(Script, NamesFileAndLineOfWhatIsWrong) {
  EXPECT_EQ(complaint_about("\n\nbreak a b"),
            "events.txt:3: \"break\" is no event; there are cost, down and up");
  EXPECT_EQ(complaint_about("down a Rome"),
            "events.txt:1: there is no router \"Rome\" in net.json");
  EXPECT_EQ(complaint_about("down a 7"), "events.txt:1: no link leads from a to New York");
  EXPECT_EQ(complaint_about("down a"), "events.txt:1: expected down ROUTER ROUTER");
  EXPECT_EQ(complaint_about("cost a b"), "events.txt:1: expected cost ROUTER ROUTER COST");
  EXPECT_EQ(complaint_about("cost a b 1 2"), "events.txt:1: expected cost ROUTER ROUTER COST");
  EXPECT_EQ(complaint_about("cost a b -1"), "events.txt:1: a cost cannot be negative (-1)");
  EXPECT_EQ(complaint_about("cost a b inf"),
            "events.txt:1: a cost must be a finite number, this is inf");
  EXPECT_EQ(complaint_about("cost a b 1e999"),
            "events.txt:1: \"1e999\" is out of range for a cost");
  EXPECT_EQ(complaint_about("cost a b 12x"), "events.txt:1: \"12x\" is not a number");
  EXPECT_EQ(complaint_about("down \"a b"), "events.txt:1: a quotation mark is not closed");
  EXPECT_EQ(complaint_about("down a b\ndown a b"), "events.txt:2: the link from a to Bern is down");
  EXPECT_EQ(complaint_about("up a b"), "events.txt:1: the link from a to Bern is not down");
}

TEST(Script, SaysThatANameBelongsToSeveralRouters) {
  const Topology net = from_json(R"({
    "nodes": [{"id": 1, "name": "Springfield"}, {"id": 2, "name": "Springfield"}, {"id": 3}],
    "links": [{"source": 1, "target": 2}, {"source": 2, "target": 3}]})");
  EXPECT_EQ(complaint([&] { return parse_script("s", "down Springfield 3", net); }),
            "s:1: \"Springfield\" is the name of several routers; use an id: \"1\", \"2\"");
  EXPECT_EQ(parse_script("s", "down 2 3", net).size(), 1U);
}

TEST(RandomEvents, AreAFunctionOfTheSeed) {
  const Topology net = hub_ring(12, {});
  const auto print = [&](std::uint64_t seed) {
    std::string text;
    for (const LinkEvent& event : random_events(net, 40, seed)) text += describe(net, event) + "\n";
    return text;
  };
  EXPECT_EQ(print(3), print(3));
  EXPECT_NE(print(3), print(4));
}

TEST(RandomEvents, LoseOnlyLinksThatAreThereAndReturnOnlyLostOnes) {
  std::mt19937_64 draw(5);
  const Topology net = random_network(15, 20, draw);
  std::vector<Cost> costs = net.arc_costs();
  int kinds[3] = {};
  for (const LinkEvent& event : random_events(net, 500, 11)) {
    ++kinds[static_cast<int>(event.kind)];
    for (const Change& change : event.changes) {
      EXPECT_EQ(costs[change.arc] == kNoLink, event.kind == EventKind::up);
      EXPECT_EQ(change.cost == kNoLink, event.kind == EventKind::down);
      costs[change.arc] = change.cost;
    }
  }
  EXPECT_EQ(costs, costs_after(net, random_events(net, 500, 11), 500));
  for (const int count : kinds) EXPECT_GT(count, 50);
}

}  // namespace
