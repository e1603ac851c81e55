#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/published.hpp"
#include "table/sim_group.hpp"

/// What becomes of a table whose peers fail, leave, or made another one (TAB-T4, TAB-T5).
namespace dunlin {
namespace {

using test::contains;
using test::SimGroup;
using test::what_is_thrown_by;

struct Row {
  Cell<int> step;
  Versioned<std::array<int, 40>> config;
  List<int, 4> events;
};
struct OtherRow {
  Cell<int> step;
  Cell<double> load;
};

using Upcalls = std::vector<std::pair<std::size_t, std::string>>;
template <class AnyRow>
void note_failures(Table<AnyRow>& table, Upcalls& upcalls) {
  table.on_failure(
      [&upcalls](auto&, std::size_t row, std::string_view why) { upcalls.emplace_back(row, why); });
}

TEST(Failure, FreezesTheRowAndTellsOnce) {
  SimGroup<Row> group(3);
  group.make_all();
  Upcalls upcalls;
  note_failures(group[0], upcalls);
  group[2].mine().step = 7;
  group[2].mine().config = std::array<int, 40>{1, 2, 3};
  EXPECT_TRUE(group[2].mine().events.append(5));
  group[2].push();
  group.settle();
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return !upcalls.empty(); }));
  group.settle();
  ASSERT_EQ(upcalls.size(), 1U);
  EXPECT_EQ(upcalls[0].first, 2U);
  EXPECT_FALSE(upcalls[0].second.empty()) << "it says how it was noticed";
  EXPECT_FALSE(group[0].alive(2));
  EXPECT_EQ(group[0].state(2), RowState::failed);
  EXPECT_EQ(group[0][2].step, 7);
  EXPECT_EQ(group[0][2].config.load()[2], 3);
  EXPECT_EQ(group[0][2].config.version(), 1U);
  EXPECT_EQ(group[0][2].events.at(0), 5);
  EXPECT_TRUE(group[0].connected()) << "the dead do not count";
}

TEST(Failure, TheSurvivorsGoOn) {
  SimGroup<Row> group(3);
  group.make_all();
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(2) && !group[1].alive(2); }));
  group[0].mine().step = 3;
  EXPECT_EQ(group[0].push().sent, 1U);
  EXPECT_EQ(group[0].to({2}).push().sent, 0U);
  group.settle();
  EXPECT_EQ(group[1][0].step, 3);
}

TEST(Failure, ANodeThatOnlySeemedDeadCannotChangeItsFrozenRow) {
  SimGroup<Row> group(2);
  group.make_all();
  group[1].mine().step = 1;
  group[1].push();
  group.settle();
  // Node 0 hears nothing of node 1 any more, whose own writes still get through.
  group.world.pause(1, 3'000'000);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(1); }));
  group.world.on(1, [&] {
    group[1].mine().step = 99;
    group[1].mine().config = std::array<int, 40>{99};
    group[1].push();
  });
  group.settle();
  EXPECT_EQ(group[0][1].step, 1);
  EXPECT_EQ(group[0][1].config.version(), 0U);
  EXPECT_EQ(group[0].snapshot()[1].step, 1);
  EXPECT_TRUE((max(&Row::step) == 1).operator()(group[0])) << "expressions see the frozen row";
}

TEST(Failure, AFrozenRowHoldsNoGuardWithoutItsData) {
  struct Guarded {
    std::array<Cell<std::uint64_t>, 40> data;
    Cell<std::uint64_t> count;
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimGroup<Guarded> group(2, test::rough_network(), seed);
    group.make_all();
    std::uint64_t n = 0;
    group.world.attach(1, [&] {
      ++n;
      for (auto& entry : group[1].mine().data) entry = n;
      group[1].mine().count = n;
      group[1].push();
      return 1;
    });
    group.world.at(group.world.now_ns() + 10'000 + seed * 37, [&] { group.world.crash(1); });
    ASSERT_TRUE(group.run_until([&] { return !group[0].alive(1); }));
    const Guarded& frozen = group[0][1];
    ASSERT_GT(frozen.count.load(), 0U);
    for (const auto& entry : frozen.data) ASSERT_GE(entry.load(), frozen.count.load());
  }
}

TEST(Failure, OneOfANodeThatFailedBeforeTheTableWasMadeIsToldToo) {
  SimGroup<Row> group(2);
  group.world.attach(0, [&] { return group.world.fabric(0).poll(); });
  group.world.attach(1, [&] { return group.world.fabric(1).poll(); });
  group.world.crash(1);
  EXPECT_TRUE(group.run_until([&] { return group.world.fabric(0).failed(1); }));
  group.world.detach_all(0);
  Upcalls upcalls;
  note_failures(group.make(0), upcalls);
  group.settle();
  ASSERT_EQ(upcalls.size(), 1U);
  EXPECT_EQ(group[0].state(1), RowState::failed);
  EXPECT_TRUE(group[0].connected());
}

TEST(Failure, AnUpcallMayThrowAndNoneIsForgotten) {
  SimGroup<Row> group(3);
  group.make_all();
  std::vector<std::size_t> told;
  std::size_t caught = 0;
  group[0].on_failure([&](auto&, std::size_t row, std::string_view) {
    told.push_back(row);
    throw std::runtime_error("from an upcall");
  });
  group.world.detach_all(0);
  group.world.attach(0, [&]() -> std::size_t {
    try {
      return group[0].poll();
    } catch (const std::runtime_error&) {
      ++caught;
      return 1;
    }
  });
  group.world.crash(1);
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return told.size() == 2; }));
  group.settle();
  EXPECT_EQ(caught, 2U);
  EXPECT_EQ(told.size(), 2U);
}

TEST(Failure, IsToldToAnUpcallThatComesLate) {
  SimGroup<Row> group(3);
  group.make_all();
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(2); }));
  group.settle();
  Upcalls upcalls;
  note_failures(group[0], upcalls);
  group.world.on(0, [] {});  // there is something to poll for
  group.settle();
  ASSERT_EQ(upcalls.size(), 1U);
  EXPECT_EQ(upcalls[0].first, 2U);
}

TEST(Failure, AnUpcallMayReplaceItself) {
  SimGroup<Row> group(4);
  group.make_all();
  Upcalls later;
  std::vector<std::size_t> first;
  group[0].on_failure([&, kept = std::vector<int>(100)](auto& t, std::size_t row, auto) {
    note_failures(t, later);
    first.push_back(row + kept.size());  // the address sanitizer watches
  });
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return !first.empty(); }));
  group.world.crash(3);
  EXPECT_TRUE(group.run_until([&] { return !later.empty(); }));
  EXPECT_EQ(first, std::vector<std::size_t>{102});
  EXPECT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].first, 3U);
}

TEST(FailureDeathTest, ATableThatIsDestroyedByItsOwnTriggerEndsTheProcess) {
  const auto destroy_within = [] {
    sim::World world(sim::profile("ideal"), 1, 1);  // of the process that is to end
    auto table = std::make_unique<Table<Row>>(world.fabric(0), TableOptions{.name = "state"});
    table->when([](const auto&) { return true; }).once([&] { table.reset(); });
    table->poll();
  };
  EXPECT_DEATH(destroy_within(), "table 'state' is destroyed from within its own poll");
}

TEST(Failure, AnUpcallMayPushAndPoll) {
  SimGroup<Row> group(3);
  group.make_all();
  group[0].on_failure([&](Table<Row>& t, std::size_t, std::string_view) {
    t.mine().step = 5;
    t.push(&Row::step);
    t.poll();
  });
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return group[1][0].step == 5; }));
}

TEST(Withdrawal, FreezesTheRow) {
  SimGroup<Row> group(2);
  group.make_all();
  Upcalls upcalls;
  note_failures(group[0], upcalls);
  group[1].mine().step = 4;
  group[1].push();
  group.settle();
  group.destroy(1);
  EXPECT_TRUE(group.run_until([&] { return group[0].state(1) == RowState::withdrawn; }));
  group.settle();
  EXPECT_EQ(upcalls.size(), 1U);
  EXPECT_EQ(group[0][1].step, 4);
  EXPECT_FALSE(group[0].alive(1));
}

TEST(Withdrawal, FollowedByTheNodesDeathIsToldOnce) {
  SimGroup<Row> group(2);
  group.make_all();
  Upcalls upcalls;
  note_failures(group[0], upcalls);
  group.destroy(1);
  EXPECT_TRUE(group.run_until([&] { return upcalls.size() == 1; }));
  group.world.crash(1);
  group.settle();
  EXPECT_EQ(upcalls.size(), 1U);
  EXPECT_EQ(group[0].state(1), RowState::withdrawn);
}

TEST(Rebuilding, GoesOnAmongTheSurvivors) {
  SimGroup<Row> group(3);
  group.make_all({.name = "state"});
  group.world.crash(1);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(1) && !group[2].alive(1); }));
  Table<Row> a(group.world.fabric(0), {.name = "state", .members = {0, 2}});
  Table<Row> b(group.world.fabric(2), {.name = "state", .members = {0, 2}});
  group.world.attach(0, [&] { return a.poll(); });
  group.world.attach(2, [&] { return b.poll(); });
  EXPECT_TRUE(group.run_until([&] { return a.connected() && b.connected(); }));
  EXPECT_EQ(b.size(), 2U);
  EXPECT_EQ(b.my_row(), 1U);
  b.mine().step = 8;
  b.push();
  group.settle();
  EXPECT_EQ(a[1].step, 8);
  EXPECT_EQ(group[0][2].step, 0) << "the old table is another one";
  group.world.detach_all(0);
  group.world.detach_all(2);
}

TEST(Rebuilding, TablesOfDifferentGenerationsNeverMix) {
  SimGroup<Row> group(2);
  group.make_all({.name = "state"});
  group[0].mine().step = 1;
  group[0].push();
  group.settle();
  // Node 1 is quicker with its second table than node 0.
  Table<Row> second(group.world.fabric(1), {.name = "state"});
  group.world.attach(1, [&] { return second.poll(); });
  group[0].mine().step = 2;
  group[0].push();
  group.settle();
  EXPECT_FALSE(second.connected());
  EXPECT_EQ(second[0].step, 0);
  EXPECT_EQ(group[1][0].step, 2);
  group.world.detach_all(1);
}

/// As an observer sees it.
TEST(Rebuilding, ARowIsShownAsWaitingUntilItsNodeHasTheTable) {
  sim::World world(sim::profile("ideal"), 2, 1);
  const Table<Row> table(world.fabric(0), {.name = "state"});
  std::vector<std::uint64_t> states;
  for (const CounterView& counter : test::own_counters_of(world.fabric(0)))
    if (counter.name == "table.row_states") states = counter.words;
  const auto number = [](RowState state) { return static_cast<std::uint64_t>(state); };
  EXPECT_EQ(states, (std::vector<std::uint64_t>{number(RowState::own), number(RowState::waiting)}));
}

TEST(Rebuilding, AnAttemptThatFailedDoesNotCount) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Table<Row> a(world.fabric(0), {.name = "state"});
  world.attach(0, [&] { return a.poll(); });
  std::vector<Region> others;
  while (others.size() < kMaxRegions) {
    others.push_back(world.fabric(1).allocate({.name = "other", .bytes = 64}));
  }
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { const Table<Row> no_room(world.fabric(1), {.name = "state"}); }),
      "kMaxRegions"));
  const std::string long_name(kMaxTableNameBytes + 1, 'x');
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { const Table<Row> too_long(world.fabric(1), {.name = long_name}); }),
      "kMaxTableNameBytes"));
  others.clear();
  Table<Row> b(world.fabric(1), {.name = "state"});
  world.attach(1, [&] { return b.poll(); });
  EXPECT_TRUE(world.run_until([&] { return a.connected() && b.connected(); }, 100'000'000));
}

TEST(Rebuilding, TakesAnotherRowType) {
  SimGroup<Row> group(2);
  group.make_all({.name = "state"});
  Table<OtherRow> a(group.world.fabric(0), {.name = "state"});
  Table<OtherRow> b(group.world.fabric(1), {.name = "state"});
  group.world.attach(0, [&] { return a.poll(); });
  group.world.attach(1, [&] { return b.poll(); });
  EXPECT_TRUE(group.run_until([&] { return a.connected() && b.connected(); }));
  a.mine().load = 0.5;
  a.push();
  group.settle();
  EXPECT_EQ(b[0].load, 0.5);
  group.world.detach_all(0);
  group.world.detach_all(1);
}

TEST(Rebuilding, ManyTablesFollowEachOther) {
  SimGroup<Row> group(2);
  for (int round = 0; round < 200; ++round) {
    group.make_all({.name = "state"});
    group[0].mine().step = round;
    group[0].push();
    ASSERT_TRUE(group.run_until([&] { return group[1][0].step == round; })) << round;
    group.destroy(0);
    group.destroy(1);
  }
}

/// Two nodes make tables that do not fit together.
template <class Mine, class Theirs>
struct Mismatch {
  explicit Mismatch(const TableOptions& my_options = {}, const TableOptions& their_options = {})
      : world(sim::profile("ideal"), 2, 1),
        mine(world.fabric(0), my_options),
        theirs(world.fabric(1), their_options) {
    note_failures(mine, upcalls);
    world.attach(0, [this] { return mine.poll(); });
    world.attach(1, [this] { return theirs.poll(); });
    if constexpr (requires { mine.mine().step; }) {
      mine.mine().step = 66;
      mine.push();
    }
    world.run_for(10'000'000);
  }
  sim::World world;
  Table<Mine> mine;
  Table<Theirs> theirs;
  Upcalls upcalls;
};

TEST(Refusal, NamesTheFirstColumnThatDiffers) {
  const Mismatch<Row, OtherRow> m;
  EXPECT_EQ(m.mine.state(1), RowState::refused);
  EXPECT_EQ(m.theirs.state(0), RowState::refused);
  ASSERT_EQ(m.upcalls.size(), 1U);
  const std::string text = what_is_thrown_by([&] { m.mine.check(); });
  EXPECT_TRUE(contains(text, "table 'table'"));
  EXPECT_TRUE(contains(text, "column 'load' there is column 'config' here"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.theirs.check(); }),
                       "column 'config' there is column 'load' here"));
}

/// Both of 16 bytes, in the same place.
TEST(Refusal, ConcernsValuesThatAgreeOnlyInSize) {
  struct Numbers {
    Cell<std::array<std::int32_t, 4>> values;
  };
  struct Reals {
    Cell<std::array<float, 4>> values;
  };
  const Mismatch<Numbers, Reals> m;
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.mine.check(); }),
                       "column 'values' is 'bytes(f32*4) stamped"));
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { m.mine.check(); }), "there and 'bytes(i32*4) stamped"));
}

TEST(Refusal, KeepsTheTablesApart) {
  const Mismatch<Row, OtherRow> m;
  EXPECT_EQ(m.theirs[0].step, 0);
  EXPECT_FALSE(m.mine.connected()) << "whoever waits for it hears of the mistake by check()";
  EXPECT_FALSE(m.theirs.connected());
}

TEST(Refusal, ConcernsTheRefreshModeToo) {
  const Mismatch<OtherRow, OtherRow> m({.refresh = Refresh::reads}, {});
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.mine.check(); }), "'refresh' is 'writes' there"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.mine.check(); }), "and 'reads' here"));
  EXPECT_EQ(m.mine.state(1), RowState::refused);
}

TEST(Refusal, ConcernsTheMembersAndTheirOrder) {
  const Mismatch<OtherRow, OtherRow> m({.members = {0, 1}}, {.members = {1, 0}});
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.mine.check(); }), "'members' is '1 0' there"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { m.mine.check(); }), "and '0 1' here"));
}

TEST(Refusal, DoesNotConcernTheRefreshInterval) {
  const Mismatch<OtherRow, OtherRow> m({.refresh = Refresh::reads, .refresh_interval_us = 5},
                                       {.refresh = Refresh::reads, .refresh_interval_us = 9});
  EXPECT_EQ(what_is_thrown_by([&] { m.mine.check(); }), "nothing");
  EXPECT_TRUE(m.mine.connected());
}

TEST(SeveralTables, OnOneFabricDoNotDisturbEachOther) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Table<Row> a0(world.fabric(0), {.name = "a"});
  Table<Row> a1(world.fabric(1), {.name = "a"});
  Table<OtherRow> b1(world.fabric(1), {.name = "b"});
  Table<OtherRow> b0(world.fabric(0), {.name = "b"});
  world.attach(0, [&] { return a0.poll() + b0.poll(); });
  world.attach(1, [&] { return a1.poll() + b1.poll(); });
  const auto all_connected = [&] {
    return a0.connected() && a1.connected() && b0.connected() && b1.connected();
  };
  EXPECT_TRUE(world.run_until(all_connected, 100'000'000));
  a0.mine().step = 1;
  b0.mine().step = 2;
  a0.push();
  b0.push();
  EXPECT_TRUE(world.run_until([&] { return a1[0].step == 1 && b1[0].step == 2; }, 100'000'000));
  EXPECT_EQ(a0[1].step, 0);
}

TEST(Members, MayBeSomeInAnyOrder) {
  SimGroup<Row> group(4);
  const TableOptions options{.members = {3, 1}};
  group.make(1, options);
  group.make(3, options);
  EXPECT_TRUE(group.run_until([&] { return group[1].connected() && group[3].connected(); }));
  EXPECT_EQ(group[1].my_row(), 1U);
  EXPECT_EQ(group[3].my_row(), 0U);
  group[3].mine().step = 6;
  EXPECT_EQ(group[3].push().sent, 1U);
  group.settle();
  EXPECT_EQ(group[1][0].step, 6);
}

TEST(Members, OfOneNodeIsATableToo) {
  SimGroup<Row> group(2);
  group.make(1, {.members = {1}});
  EXPECT_TRUE(group[1].connected());
  EXPECT_EQ(group[1].push().sent, 0U);
}

TEST(Members, MustBeThoseOfTheGroup) {
  SimGroup<Row> group(3);
  const auto refusal = [&](const std::vector<Rank>& members) {
    return what_is_thrown_by([&] { group.make(0, {.name = "state", .members = members}); });
  };
  EXPECT_TRUE(contains(refusal({0, 3}), "table 'state': member 1 (rank 3) is not in group"));
  EXPECT_TRUE(contains(refusal({0, 3}), "ranks 0 to 2"));
  EXPECT_TRUE(contains(refusal({0, 1, 0}), "member 2 (rank 0) is listed twice"));
  EXPECT_TRUE(contains(refusal({1, 2}), "this process (rank 0) is not among its members (1 2)"));
}

}  // namespace
}  // namespace dunlin
