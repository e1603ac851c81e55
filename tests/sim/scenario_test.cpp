#include "sim/scenario.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sim/audit.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

namespace dunlin::app::sim {
namespace {

constexpr std::uint64_t kShards = 8;
const std::uint64_t kSeedsInShard = test::rounds(200);
const std::uint64_t kChangingInShard = test::rounds(40);
const std::uint64_t kTodayInShard = test::rounds(8);

/// In shards, so that they run beside each other.
struct Seeds : testing::TestWithParam<std::uint64_t> {
  void run(std::uint64_t seed, bool changing = false) {
    const Outcome outcome = run_multicast(seed, {}, {.changing = changing});
    ASSERT_EQ(outcome.fault, "") << "dunlin sim multicast --seeds " << seed
                                 << (changing ? " --changing" : "") << " --trace";
    sum.views += outcome.views;
    sum.deliveries += outcome.deliveries;
    sum.faults += outcome.faults;
    ++seeds;
  }

  /// Or it would be easy to keep the promises.
  void expect_trouble() const {
    EXPECT_GT(sum.views, 3 * seeds / 2);
    EXPECT_GT(sum.deliveries, 1'000 * seeds);
    EXPECT_GT(sum.faults, 3 * seeds / 2);
  }

  Outcome sum;
  std::uint64_t seeds = 0;
};
INSTANTIATE_TEST_SUITE_P(Shard, Seeds, testing::Range<std::uint64_t>(0, kShards));

TEST_P(Seeds, BreakNoPromise) {
  const std::uint64_t first = GetParam() * kSeedsInShard + 1;
  for (std::uint64_t seed = first; seed < first + kSeedsInShard; ++seed)
    ASSERT_NO_FATAL_FAILURE(run(seed));
  expect_trouble();
  for (const std::uint64_t seed : test::seeds_of_today(kTodayInShard))
    ASSERT_NO_FATAL_FAILURE(run(seed));
}

TEST_P(Seeds, BreakNoPromiseWhereSubgroupsComeAtRunTime) {
  const std::uint64_t first = GetParam() * kChangingInShard + 1;
  for (std::uint64_t seed = first; seed < first + kChangingInShard; ++seed)
    ASSERT_NO_FATAL_FAILURE(run(seed, true));
  expect_trouble();
  for (const std::uint64_t seed : test::seeds_of_today(kTodayInShard))
    ASSERT_NO_FATAL_FAILURE(run(seed, true));
}

/// In both, a leader is left behind while a subgroup changes (GRP-A6).
TEST(Scenario, HasOneOrderAtALeaderThatIsLeftBehind) {
  for (const std::uint64_t seed : {1837132313445282205U, 1740868560925099806U})
    EXPECT_EQ(run_multicast(seed, {}, {.changing = true}).fault, "") << seed;
}

/// Nine senders, whose messages of up to 6,000 bytes pass through rings of 1,024 one by one.
TEST(Scenario, CountsThePollsForEachPieceOfAMessage) {
  EXPECT_EQ(run_multicast(4249387333336975018U, {}, {.changing = true}).fault, "");
}

TEST(Scenario, IsAFunctionOfItsSeed) {
  for (const std::uint64_t seed : {3U, 4U}) {
    const Outcome outcome = run_multicast(seed);
    EXPECT_EQ(run_multicast(seed).digest, outcome.digest);
    std::size_t lines = 0;
    EXPECT_EQ(run_multicast(seed, [&](std::uint64_t, const std::string&) { ++lines; }).digest,
              outcome.digest);
    EXPECT_GT(lines, 0U);
    EXPECT_NE(run_multicast(seed + 10).digest, outcome.digest);
  }
}

/// Two members that went through two views, and delivered two messages of each other.
struct Audit : testing::Test {
  Audit() {
    for (const char* const name : {"a", "b", "c"}) {
      NodeLog node{.name = name,
                   .views = {},
                   .subgroups = std::vector<SubgroupLog>(1),
                   .dead = false,
                   .left = false,
                   .ended = false};
      node.views.push_back({.number = 1, .members = {"a", "b", "c"}, .me = 0, .departed = {}});
      node.subgroups[0] = {.delivered = {{1, {0, 0}}, {1, {1, 0}}, {1, {0, 1}}, {1, {1, 1}}},
                           .accepted = 2,
                           .member = true,
                           .sender = true};
      record.nodes.push_back(node);
    }
    c().dead = true;
    c().subgroups[0].delivered.pop_back();
    for (NodeLog* const node : {&a(), &b()})
      node->views.push_back({.number = 2, .members = {"a", "b"}, .me = 0, .departed = {"c"}});
  }
  NodeLog& a() { return record.nodes[0]; }
  NodeLog& b() { return record.nodes[1]; }
  NodeLog& c() { return record.nodes[2]; }
  static std::vector<SubgroupLog::Entry>& delivered(NodeLog& node) {
    return node.subgroups[0].delivered;
  }
  void expect_fault(const std::string& part, bool at_rest = false) const {
    const std::string fault = find_fault(record, at_rest);
    EXPECT_NE(fault.find(part), std::string::npos) << "'" << fault << "'";
    EXPECT_FALSE(fault.empty());
  }

  Record record{.subgroups = {{"all", multicast::Mode::ordered}}, .nodes = {}};
};

TEST_F(Audit, FindsNoFaultWhereThereIsNone) {
  EXPECT_EQ(find_fault(record, false), "");
  EXPECT_EQ(find_fault(record, true), "");
}

TEST_F(Audit, FindsViewsThatDiffer) {
  b().views[1].members = {"b"};
  expect_fault("a has view 2 of a b, b has view 2 of b");
}

TEST_F(Audit, FindsAViewThatIsLeftOut) {
  a().views.erase(a().views.begin());
  expect_fault("a came to view 2 of a b after 0 views");
}

TEST_F(Audit, FindsAMemberThatIsNotInItsView) {
  a().views[1].members = {"b"};
  expect_fault("a is not in its own view 2");
}

TEST_F(Audit, FindsAMessageThatIsDeliveredTwice) {
  delivered(a()).push_back({2, {1, 1}});
  expect_fault("a delivered message 1 of node 1 in 'all', and not 2");
}

TEST_F(Audit, FindsAGap) {
  delivered(a()).erase(delivered(a()).begin() + 1);
  expect_fault("a delivered message 1 of node 1 in 'all', and not 0");
}

TEST_F(Audit, FindsAnotherOrder) {
  std::swap(delivered(a())[0], delivered(a())[1]);
  expect_fault("in view 1");
}

TEST_F(Audit, FindsThatASurvivorLacksWhatTheDeadDelivered) {
  for (NodeLog* const node : {&a(), &b()}) delivered(*node).resize(2);
  expect_fault("a delivered 2 messages, and c 3, which is not the beginning of that");
}

TEST_F(Audit, FindsThatSurvivorsDeliverInDifferentViews) {
  delivered(b())[3].view = 2;
  expect_fault("in view 1");
}

TEST_F(Audit, FindsWhoIsLeftBehind) {
  delivered(b()).pop_back();
  delivered(a())[3].view = 2;
  expect_fault("b delivered 1 of the 2 messages of b", true);
  b().views.pop_back();
  expect_fault("b stays in view 1", true);
}

TEST_F(Audit, FindsWhoStopsWithoutNeed) {
  b().ended = true;
  a().views.push_back({.number = 3, .members = {"a"}, .me = 0, .departed = {"b"}});
  EXPECT_EQ(find_fault(record, true), "");  // its link may have been cut
  record.clear_cut = true;
  expect_fault("b stopped in view 2 of a b, of which 2 were there", true);
  b().left = true;
  EXPECT_EQ(find_fault(record, true), "");
}

TEST_F(Audit, FindsWhoIsSentAwayForWantOfALogThatIsThere) {
  b().ended = true;
  b().left = true;
  b().lacks_log = "all";
  a().views.push_back({.number = 3, .members = {"a"}, .me = 0, .departed = {"b"}});
  expect_fault("b left as nobody has the log of 'all', and a has it", true);
  a().ended = true;
  EXPECT_EQ(find_fault(record, true), "");
}

TEST_F(Audit, FindsWhoWaitsForTheDead) {
  a().views.pop_back();
  b().views.pop_back();
  expect_fault("a waits in view 1 of a b c for c", true);
}

}  // namespace
}  // namespace dunlin::app::sim
