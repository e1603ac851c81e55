#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "table/sim_group.hpp"

/// Publishing: what reaches whom, and that nothing is lost (TAB-T1, TAB-T2).
namespace dunlin {
namespace {

using test::contains;
using test::SimGroup;
using test::what_is_thrown_by;

using Wide = std::array<std::uint64_t, 6>;
using Config = std::array<std::uint64_t, 20>;

struct PushedRow {
  Cell<int> a{-1};
  Cell<int> b;
  std::array<Cell<double>, 12> costs;
  Cell<Wide> wide;
  Versioned<Config> config;
  std::array<Versioned<int>, 3> several;
  List<std::uint32_t, 8> events;
};

Config config(std::uint64_t n) {
  Config c;
  c.fill(n);
  return c;
}

TEST(Push, AllStartOutWithTheInitialRow) {
  SimGroup<PushedRow> group(3);
  group.make_all();
  group.settle();
  for (Rank node = 0; node < 3; ++node) {
    EXPECT_EQ(group[node].size(), 3U);
    EXPECT_EQ(group[node].my_row(), node);
    EXPECT_EQ(group[node].state(node), RowState::own);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(group[node][r].a, -1);
      EXPECT_TRUE(group[node].alive(r));
    }
  }
}

struct Halves {
  Cell<std::int32_t> alone;
  Cell<double> aligned;
  Cell<std::uint8_t> last;
};
/// Some devices place whole words only; padding costs nothing.
TEST(Push, TheWholeRowTravelsInWholeWords) {
  SimGroup<Halves> group(2);
  group.make_all();
  const auto items = group[0].core().whole_row();
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].offset, 0U);
  EXPECT_EQ(items[0].bytes, 24U);
  group[0].mine().last = 7;
  group[0].push();
  group.settle();
  EXPECT_EQ(group[1][0].last, 7);
}

TEST(Push, TheWholeRowReachesAllOthers) {
  SimGroup<PushedRow> group(3);
  group.make_all();
  PushedRow& mine = group[1].mine();
  mine.a = 1;
  mine.costs[11] = 2.5;
  mine.wide = Wide{1, 2, 3, 4, 5, 6};
  mine.config = config(9);
  mine.several[2] = 3;
  EXPECT_TRUE(mine.events.append(77));
  const Pushed pushed = group[1].push();
  EXPECT_EQ(pushed.sent, 2U);
  EXPECT_EQ(pushed.behind + pushed.waiting, 0U);
  group.settle();
  for (const Rank node : {0U, 2U}) {
    const PushedRow& seen = group[node][1];
    EXPECT_EQ(seen.a, 1);
    EXPECT_EQ(seen.costs[11], 2.5);
    EXPECT_EQ(seen.wide.load(), (Wide{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(seen.config.load(), config(9));
    EXPECT_EQ(seen.config.version(), 1U);
    EXPECT_EQ(seen.several[2].load(), 3);
    EXPECT_EQ(seen.events.at(0), 77U);
    EXPECT_EQ(group[node][0].a, -1) << "other rows stay as they are";
  }
}

TEST(Push, OnlyTheColumnsNamedAreSent) {
  SimGroup<PushedRow> group(2);
  group.make_all();
  group.settle();
  group[0].mine().a = 1;
  group[0].mine().b = 2;
  group[0].mine().config = config(3);
  group[0].push(&PushedRow::b);
  group.settle();
  EXPECT_EQ(group[1][0].a, -1);
  EXPECT_EQ(group[1][0].b, 2);
  EXPECT_EQ(group[1][0].config.version(), 0U);
  group[0].push(&PushedRow::config, &PushedRow::a);
  group.settle();
  EXPECT_EQ(group[1][0].a, 1);
  EXPECT_EQ(group[1][0].config.load(), config(3));
}

TEST(Push, ASingleEntryIsSentAlone) {
  SimGroup<PushedRow> group(2);
  group.make_all();
  group.settle();  // the whole row is sent once when the peers meet
  for (std::size_t i = 0; i < 12; ++i) group[0].mine().costs[i] = 1.0 + static_cast<double>(i);
  group[0].push(entry(&PushedRow::costs, 7));
  group.settle();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(group[1][0].costs[i], i == 7 ? 8.0 : 0.0);
}

TEST(Push, ASingleEntryMustExist) {
  const auto twelfth = [] { static_cast<void>(entry(&PushedRow::costs, 12)); };
  EXPECT_TRUE(contains(what_is_thrown_by(twelfth), "no entry 12; the column has entries 0 to 11"));
}

TEST(Push, GoesToTheRowsNamedOnly) {
  SimGroup<PushedRow> group(4);
  group.make_all();
  group[0].mine().a = 5;
  EXPECT_EQ(group[0].to({1, 3}).push(&PushedRow::a).sent, 2U);
  EXPECT_EQ(group[0].to({0}).push(&PushedRow::a).sent, 0U) << "the own row is there already";
  EXPECT_EQ(group[0].to({}).push().sent, 0U);
  group.settle();
  EXPECT_EQ(group[1][0].a, 5);
  EXPECT_EQ(group[2][0].a, -1);
  EXPECT_EQ(group[3][0].a, 5);
  auto two = group[0].to({2});
  EXPECT_EQ(two.push().sent, 1U);
  group.settle();
  EXPECT_EQ(group[2][0].a, 5);
}

TEST(Push, RefusesToSelectRowsThatDoNotExist) {
  SimGroup<PushedRow> group(2);
  group.make_all({.name = "state"});
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         static_cast<void>(group[0].to({1, 2}));
                       }),
                       "table 'state' has no row 2: its rows are 0 to 1"));
}

TEST(Push, TheCompletionIsFinishedWhenAllIsPlaced) {
  SimGroup<PushedRow> group(3);
  group.make_all();
  group.settle();
  group[0].mine().config = config(4);
  group[0].mine().a = 4;
  Completion done;
  group[0].push(done, &PushedRow::config, &PushedRow::a);
  EXPECT_FALSE(done.finished());
  EXPECT_TRUE(group.run_until([&] { return done.finished(); }));
  EXPECT_FALSE(done.failed());
  for (const Rank node : {1U, 2U}) {
    EXPECT_EQ(group[node][0].a, 4);
    EXPECT_EQ(group[node][0].config.load(), config(4));
  }
  group[0].mine().a = 5;
  group[0].push(done);
  EXPECT_TRUE(group.run_until([&] { return done.finished(); })) << "it may be used again";
  EXPECT_EQ(group[2][0].a, 5);
  group[0].mine().b = 6;
  group[0].to({2}).push(done, &PushedRow::b);
  EXPECT_TRUE(group.run_until([&] { return done.finished(); }));
  EXPECT_EQ(group[2][0].b, 6);
  EXPECT_EQ(group[1][0].b, 0);
}

TEST(Push, TheCompletionSaysWhichPeerFailed) {
  SimGroup<PushedRow> group(3);
  group.make_all();
  group.settle();
  group.world.crash(2);
  Completion done;
  group[0].push(done);
  EXPECT_TRUE(group.run_until([&] { return done.finished(); }));
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(done.failed_peer(), 2U);
}

TEST(Push, ATableMadeLateIsSentEverything) {
  SimGroup<PushedRow> group(3);
  group.make(0);
  group.make(1);
  EXPECT_TRUE(group.run_until([&] { return group[0].state(1) == RowState::connected; }));
  EXPECT_FALSE(group[0].connected());
  EXPECT_EQ(group[0].state(2), RowState::waiting);
  group[0].mine().config = config(1);
  group[0].mine().config = config(2);
  group[0].mine().several[1] = 8;
  EXPECT_TRUE(group[0].mine().events.append(3));
  const Pushed pushed = group[0].push();
  EXPECT_EQ(pushed.sent, 1U);
  EXPECT_EQ(pushed.waiting, 1U);
  group.settle();

  group.make(2);
  EXPECT_TRUE(group.run_until([&] { return group.connected(); }));
  group.settle();
  EXPECT_EQ(group[2][0].config.load(), config(2));
  EXPECT_EQ(group[2][0].config.version(), 2U);
  EXPECT_EQ(group[2][0].several[1].load(), 8);
  EXPECT_EQ(group[2][0].events.at(0), 3U);
  EXPECT_EQ(group[0][2].a, -1);
  group[2].mine().a = 9;
  group[2].push();
  group.settle();
  EXPECT_EQ(group[0][2].a, 9);
  EXPECT_EQ(group[1][2].a, 9);
}

TEST(Push, IsSettledWhenAllLiveNodesHaveBeenSentEverything) {
  SimGroup<PushedRow> group(3);
  group.make(0);
  group.make(1);
  EXPECT_TRUE(group.run_until([&] { return group[0].state(1) == RowState::connected; }));
  EXPECT_FALSE(group[0].settled()) << "node 2 waits";
  group.make(2);
  EXPECT_TRUE(group.run_until([&] { return group[0].settled(); }));
  EXPECT_TRUE(group[0].connected());
  while (group[0].push().behind == 0) {
  }
  EXPECT_FALSE(group[0].settled()) << "a queue was full";
  EXPECT_TRUE(group[0].connected());
  EXPECT_TRUE(group.run_until([&] { return group[0].settled(); }));
  group.world.crash(1);
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(1) && !group[0].alive(2); }));
  EXPECT_TRUE(group[0].settled()) << "the dead do not count";
}

/// Rows of 12 bytes, which would not lie on words one behind the other.
TEST(Push, ACopyOfATableCanBeWalkedThrough) {
  struct Odd {
    std::array<Cell<int>, 3> numbers;
  };
  SimGroup<Odd> group(3);
  group.make_all();
  for (Rank node = 0; node < 3; ++node) {
    group[node].mine().numbers[2] = static_cast<int>(node);
    group[node].push();
  }
  group.settle();
  const Snapshot<Odd> snapshot = group[0].snapshot();
  int expected = 0;
  for (const Odd& row : snapshot) {
    EXPECT_EQ(row.numbers[2], expected++);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&row) % kWordBytes, 0U);
  }
  EXPECT_EQ(expected, 3);
}

TEST(Push, ACopyOfATableIsConstantAndWhole) {
  SimGroup<PushedRow> group(2);
  group.make_all();
  group[0].mine().config = config(1);
  EXPECT_TRUE(group[0].mine().events.append(3));
  group[0].push();
  group.settle();
  const Snapshot<PushedRow> snapshot = group[1].snapshot();
  group[0].mine().config = config(2);
  group[0].mine().a = 4;
  EXPECT_TRUE(group[0].mine().events.append(4));
  group[0].push();
  group.settle();
  ASSERT_EQ(snapshot.size(), 2U);
  EXPECT_EQ(snapshot[0].a, -1);
  EXPECT_EQ(snapshot[0].config.load(), config(1));
  EXPECT_EQ(snapshot[0].config.version(), 1U);
  EXPECT_EQ(snapshot[0].events.end_index(), 1U);
  const std::vector<Snapshot<PushedRow>> copies(2, snapshot);
  EXPECT_EQ(copies[1][0].config.version(), 1U);
  EXPECT_EQ(copies[1][0].events.at(0), 3U);
  EXPECT_EQ(group[1].snapshot()[0].config.load(), config(2));
}

TEST(Push, ATableMayGoWhileItsPushesAreUnderWay) {
  SimGroup<PushedRow> group(2, test::rough_network());
  group.make_all();
  for (int i = 0; i < 20; ++i) {
    group[0].mine().config = config(1);
    group[0].push();
  }
  group.destroy(0);  // the address sanitizer watches
  group.settle();
  EXPECT_EQ(group[1].state(0), RowState::withdrawn);
}

/// Queues that are always full: everything arrives nevertheless, and the newest of it.
class FullQueues : public testing::TestWithParam<std::uint64_t> {};

TEST_P(FullQueues, LoseNothing) {
  sim::Profile narrow = test::rough_network();
  narrow.queue_slots = 16;  // as many as the row may take
  SimGroup<PushedRow> group(3, narrow, GetParam());
  group.make_all();
  std::uint32_t behind = 0;
  std::uint64_t appended = 0;
  int n = 0;
  group.world.attach(0, [&] {
    if (n == 400) return 0;
    PushedRow& mine = group[0].mine();
    mine.a = ++n;
    mine.config = config(static_cast<std::uint64_t>(n));
    mine.several[0] = n;
    if (mine.events.size() == 8) mine.events.truncate_before(mine.events.begin_index() + 5);
    if (mine.events.append(static_cast<std::uint32_t>(n))) ++appended;
    mine.b = n;
    behind += group[0].push().behind;
    return 1;
  });
  int newest = 0;
  const bool done = group.run_until([&] {
    for (const Rank node : {1U, 2U}) {
      const PushedRow& seen = group[node][0];
      EXPECT_GE(seen.several[0].load(), 0);
      newest = std::max(newest, seen.a.load());
    }
    return group[1][0].events.end_index() == 400 && group[2][0].events.end_index() == 400;
  });
  EXPECT_TRUE(done) << "stopped at " << group[1][0].events.end_index() << ", a is " << newest;
  EXPECT_GT(behind, 0U) << "the test is pointless if no queue was ever full";
  group.settle();
  for (const Rank node : {1U, 2U}) {
    const PushedRow& seen = group[node][0];
    EXPECT_EQ(seen.a, 400);
    EXPECT_EQ(seen.b, 400);
    EXPECT_EQ(seen.config.load(), config(400));
    EXPECT_EQ(seen.several[0].load(), 400);
    EXPECT_EQ(seen.events.begin_index(), group[0].mine().events.begin_index());
    seen.events.visit_from(0, [](std::uint64_t i, std::uint32_t v) { EXPECT_EQ(v, i + 1); });
  }
  EXPECT_EQ(appended, 400U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FullQueues, testing::Range(std::uint64_t{1}, std::uint64_t{9}));

TEST(Push, RefusesRowsThatNoQueueCanTake) {
  sim::Profile narrow = sim::profile("ideal");
  narrow.queue_slots = 5;
  SimGroup<PushedRow> group(2, narrow);
  const std::string text = what_is_thrown_by([&] { group.make(0, {.name = "state"}); });
  EXPECT_TRUE(contains(text, "table 'state': publishing a row takes up to"));
  EXPECT_TRUE(contains(text, "the fabric's queue holds 5"));
}

}  // namespace
}  // namespace dunlin
