#include "routing/check.hpp"

#include <gtest/gtest.h>

#include "networks.hpp"
#include "routing/events.hpp"
#include "routing/paths.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

std::vector<Installed> install_all(const Topology& net, const std::vector<Cost>& costs) {
  std::vector<Installed> tables;
  for (RouterId r = 0; r < net.size(); ++r) {
    Paths paths(net, r);
    paths.compute(costs);
    tables.push_back({{paths.length().begin(), paths.length().end()},
                      {paths.next_hop().begin(), paths.next_hop().end()}});
  }
  return tables;
}

TEST(Check, AgreesWithRightTablesAlsoAfterLosses) {
  std::mt19937_64 draw(99);
  for (int network = 0; network < 20; ++network) {
    const Topology net = random_network(12, 8, draw);
    const auto events = random_events(net, 30, draw());
    const auto costs = costs_after(net, events, events.size());
    const Verdict verdict = check(net, costs, install_all(net, costs));
    EXPECT_TRUE(verdict.agrees()) << verdict.differences.front();
    EXPECT_EQ(verdict.compared, 12U * 11U);
  }
}

class CheckOfAWrongTable : public testing::Test {
 protected:
  std::string first_difference() {
    const Verdict verdict = check(net_, net_.arc_costs(), tables_);
    return verdict.agrees() ? "none" : verdict.differences.front();
  }
  const Topology net_ = from_json(kSquare);
  std::vector<Installed> tables_ = install_all(net_, net_.arc_costs());
};

TEST_F(CheckOfAWrongTable, NamesAWrongDistance) {
  tables_[0].length[3] = length_of_link(10 * kCostUnit);
  EXPECT_EQ(first_difference(), "a to d: its table says 10, Boost.Graph 3.5");
}

TEST_F(CheckOfAWrongTable, NamesAMissingRoute) {
  tables_[0].length[3] = kUnreachable;
  EXPECT_EQ(first_difference(), "a to d: its table says unreachable, Boost.Graph 3.5");
}

TEST_F(CheckOfAWrongTable, FollowsTheNextHopsToTheirEnd) {
  tables_[0].next_hop[3] = 3;
  EXPECT_EQ(first_difference(),
            "a to d: its next hops lead there at a cost of 10, the best is 3.5");
  tables_[0].next_hop[3] = 2;
  EXPECT_EQ(first_difference(), "a to d: a forwards to New York, to which it has no link");
  tables_[0].next_hop[3] = 1;
  tables_[1].next_hop[3] = 0;
  EXPECT_EQ(first_difference(), "a to d: messages run in a circle through a");
  tables_[1].next_hop[3] = kNoRouter;
  EXPECT_EQ(first_difference(), "a to d: at Bern there is no next hop");
}

TEST_F(CheckOfAWrongTable, CountsAllDifferencesButPrintsFew) {
  for (Installed& table : tables_) table.length.assign(table.length.size(), kUnreachable);
  const Verdict verdict = check(net_, net_.arc_costs(), tables_);
  EXPECT_EQ(verdict.wrong, 12U);
  EXPECT_EQ(verdict.differences.size(), 10U);
}

}  // namespace
