#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "table/sim_group.hpp"

/// Predicates and triggers (TAB-P1 to TAB-P4). Most need one node only, polled by hand.
namespace dunlin {
namespace {

using test::contains;
using test::SimGroup;
using test::what_is_thrown_by;

struct Row {
  Cell<int> step;
  Cell<bool> flag;
};
using RowTable = Table<Row>;
using Handle = RowTable::Handle;

/// A table of one node, polled by the test itself.
class Predicates : public testing::Test {
 protected:
  /// A trigger that notes its name.
  std::function<void()> note(const std::string& name) {
    return [this, name] { fired += name; };
  }
  void set(int step) { table.mine().step = step; }
  std::string poll() {
    fired.clear();
    table.poll();
    return fired;
  }

  sim::World world{sim::profile("ideal"), 1, 1};
  RowTable table{world.fabric(0)};
  std::string fired;
};

TEST_F(Predicates, RecurrentFiresInEachPassInWhichItIsTrue) {
  const Handle handle = table.when(all(&Row::step) >= 1).recurrent(note("r"));
  EXPECT_EQ(poll(), "");
  set(1);
  EXPECT_EQ(poll(), "r");
  EXPECT_EQ(poll(), "r");
  set(0);
  EXPECT_EQ(poll(), "");
  set(2);
  EXPECT_EQ(poll(), "r");
  EXPECT_EQ(handle.firings(), 3U);
}

TEST_F(Predicates, OnceFiresTheFirstTimeAndIsGone) {
  const Handle handle = table.when(all(&Row::step) >= 1).once(note("o"));
  EXPECT_EQ(poll(), "");
  EXPECT_TRUE(handle.active());
  set(1);
  EXPECT_EQ(poll(), "o");
  EXPECT_FALSE(handle.active());
  EXPECT_EQ(handle.firings(), 0U) << "nobody counts for it any more";
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, TransitionFiresEachTimeItHasBecomeTrue) {
  const Handle handle = table.when(all(&Row::step) >= 1).transition(note("t"));
  EXPECT_EQ(poll(), "");
  set(1);
  EXPECT_EQ(poll(), "t");
  EXPECT_EQ(poll(), "");
  set(0);
  EXPECT_EQ(poll(), "");
  set(1);
  EXPECT_EQ(poll(), "t");
  EXPECT_EQ(handle.firings(), 2U);
}

TEST_F(Predicates, TransitionFiresIfItIsTrueFromTheBeginning) {
  set(1);
  table.when(all(&Row::step) >= 1).transition(note("t"));
  EXPECT_EQ(poll(), "t");
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, AnyFunctionOfTheTableIsOne) {
  table.when([](const auto& t) { return t[0].step == 3 && t.size() == 1; }).once(note("f"));
  EXPECT_EQ(poll(), "");
  set(3);
  EXPECT_EQ(poll(), "f");
}

TEST_F(Predicates, AreEvaluatedInOrderOfRegistration) {
  table.when([this](const auto&) { return fired += "a", true; }).recurrent(note("1"));
  table.when([this](const auto&) { return fired += "b", false; }).recurrent(note("2"));
  table.when([this](const auto&) { return fired += "c", true; }).transition(note("3"));
  EXPECT_EQ(poll(), "a1bc3");
  EXPECT_EQ(poll(), "a1bc");
}

TEST_F(Predicates, SeeWhatEarlierTriggersOfThePassHaveDone) {
  table.when(mine(&Row::step) == 0).once([](RowTable& t) { t.mine().step = 5; });
  table.when(mine(&Row::step) == 5).once(note("seen"));
  EXPECT_EQ(poll(), "seen");
}

TEST_F(Predicates, TriggersRunInOrderAndTakeTheTableOrNothing) {
  const auto with_table = [this](auto& t) { fired += std::to_string(t.size()); };
  Handle handle = table.when(all(&Row::step) == 0).recurrent(note("a"), with_table, note("b"));
  handle.then(note("c")).then(with_table);
  EXPECT_EQ(poll(), "a1bc1");
}

TEST_F(Predicates, TriggersKeepTheirState) {
  int seen = 0;
  table.when(all(&Row::step) == 0).recurrent([n = 0, &seen]() mutable { seen = ++n; });
  for (int i = 0; i < 5; ++i) poll();
  EXPECT_EQ(seen, 5);
}

TEST_F(Predicates, NeedNoTrigger) {
  const Handle handle = table.when(all(&Row::step) == 0).recurrent();
  poll();
  poll();
  EXPECT_EQ(handle.firings(), 2U);
}

TEST_F(Predicates, OneAddedByATriggerWaitsForTheNextPass) {
  table.when(all(&Row::step) == 0).once([this] {
    fired += "outer";
    table.when(all(&Row::step) == 0).once(note("inner"));
  });
  EXPECT_EQ(poll(), "outer");
  EXPECT_EQ(poll(), "inner");
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, ManyMayBeAddedByATrigger) {
  table.when(all(&Row::step) == 0).once([this] {
    for (int i = 0; i < 100; ++i) table.when(all(&Row::step) == 0).once(note("x"));
  });
  EXPECT_EQ(poll(), "");
  EXPECT_EQ(poll(), std::string(100, 'x'));
}

TEST_F(Predicates, OneThatIsRemovedRunsNoMore) {
  Handle handle = table.when(all(&Row::step) == 0).recurrent(note("a"));
  EXPECT_EQ(poll(), "a");
  EXPECT_TRUE(handle.remove());
  EXPECT_FALSE(handle.active());
  EXPECT_FALSE(handle.remove());
  EXPECT_EQ(poll(), "");
}

/// TAB-P2 promises what this test checks.
TEST_F(Predicates, OneThatRemovesItselfRunsNoFurtherTrigger) {
  Handle handle;
  handle = table.when(all(&Row::step) == 0)
               .recurrent(
                   note("a"), [&] { handle.remove(); }, note("b"));
  handle.then(note("c"));
  EXPECT_EQ(poll(), "a");
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, OneRemovedByAnEarlierTriggerIsNotEvaluated) {
  Handle later;
  table.when(all(&Row::step) == 0).once([&] { later.remove(); });
  later = table.when([this](const auto&) { return fired += "!", true; }).recurrent();
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, OneRemovedByALaterTriggerHasRunOnceMore) {
  Handle earlier = table.when(all(&Row::step) == 0).recurrent(note("e"));
  table.when(all(&Row::step) == 0).recurrent([&] { earlier.remove(); }, note("l"));
  EXPECT_EQ(poll(), "el");
  EXPECT_EQ(poll(), "l");
}

TEST_F(Predicates, OneThatWasAddedAndRemovedInOnePassNeverRuns) {
  table.when(all(&Row::step) == 0).once([&] {
    table.when(all(&Row::step) == 0).recurrent(note("!")).remove();
  });
  poll();
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, ATriggerAddedByATriggerRunsTheNextTime) {
  Handle handle;
  bool added = false;
  const auto add = [&] {
    fired += "a";
    if (!added) handle.then(note("b"));
    added = true;
  };
  handle = table.when(all(&Row::step) == 0).recurrent(add);
  EXPECT_EQ(poll(), "a");
  EXPECT_EQ(poll(), "ab");
  bool added_again = false;
  handle.then([&] {
    fired += "c";
    if (!added_again) handle.then(note("d"));
    added_again = true;
  });
  EXPECT_EQ(poll(), "abc");
  EXPECT_EQ(poll(), "abcd");
}

TEST_F(Predicates, AOnceIsThereUntilItsTriggersHaveRun) {
  Handle handle;
  bool active = false;
  handle = table.when(all(&Row::step) == 0).once([&] { active = handle.active(); }, note("2nd"));
  EXPECT_EQ(poll(), "2nd");
  EXPECT_TRUE(active);
  EXPECT_FALSE(handle.active());
}

TEST_F(Predicates, AOnceThatRemovesItselfRunsNoFurtherTrigger) {
  Handle handle;
  handle = table.when(all(&Row::step) == 0)
               .once([&] { EXPECT_TRUE(handle.remove()); }, note("the rest does not run"));
  EXPECT_EQ(poll(), "");
  EXPECT_FALSE(handle.remove());
}

TEST_F(Predicates, APollWithinATriggerEvaluatesNothing) {
  table.when(all(&Row::step) == 0).recurrent([this] {
    fired += "(";
    table.poll();
    fired += ")";
  });
  EXPECT_EQ(poll(), "()");
}

TEST_F(Predicates, AnExceptionFromATriggerEndsThePassAndLeavesThroughPoll) {
  int throws = 1;
  const auto fail = [&] {
    if (throws-- > 0) throw std::runtime_error("from a trigger");
  };
  table.when(all(&Row::step) == 0).recurrent(note("a"), fail, note("b"));
  table.when(all(&Row::step) == 0).recurrent(note("c"));
  fired.clear();
  EXPECT_THROW(table.poll(), std::runtime_error);
  EXPECT_EQ(fired, "a");
  EXPECT_EQ(poll(), "abc") << "the detector stays usable";
}

TEST_F(Predicates, AnExceptionFromAPredicateDoesTheSame) {
  int throws = 1;
  const auto fail = [&](const auto&) -> bool {
    if (throws-- > 0) throw std::runtime_error("from a predicate");
    return true;
  };
  table.when(fail).transition(note("a"));
  EXPECT_THROW(table.poll(), std::runtime_error);
  EXPECT_EQ(poll(), "a");
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, AOnceThatThrowsIsGone) {
  table.when(all(&Row::step) == 0).once([] { throw std::runtime_error("once"); }, note("a"));
  EXPECT_THROW(table.poll(), std::runtime_error);
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, APassAfterAnExceptionStillRemoves) {
  Handle handle;
  handle = table.when(all(&Row::step) == 0).recurrent([&] {
    handle.remove();
    throw std::runtime_error("after removal");
  });
  EXPECT_THROW(table.poll(), std::runtime_error);
  EXPECT_EQ(poll(), "");
  EXPECT_FALSE(handle.active());
}

TEST_F(Predicates, PollSaysHowManyFired) {
  table.when(all(&Row::step) == 0).recurrent();
  table.when(all(&Row::step) == 0).recurrent();
  table.when(all(&Row::step) == 1).recurrent();
  table.poll();
  EXPECT_EQ(table.poll(), 2U);
  set(7);
  EXPECT_EQ(table.poll(), 0U);
}

TEST_F(Predicates, AHandleOfNothingRefersToNothing) {
  Handle nothing;
  EXPECT_FALSE(nothing.active());
  EXPECT_FALSE(nothing.remove());
  EXPECT_EQ(nothing.firings(), 0U);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { nothing.then(note("!")); }), "is gone"));
  EXPECT_EQ(poll(), "");
}

TEST_F(Predicates, ATriggerForOneThatIsGoneIsRefused) {
  Handle handle = table.when(all(&Row::step) == 0).once(note("a"));
  EXPECT_EQ(poll(), "a");
  EXPECT_TRUE(contains(what_is_thrown_by([&] { handle.then(note("!")); }), "is gone"));
}

TEST_F(Predicates, AHandleDoesNotTakeALaterPredicateForItsOwn) {
  Handle first = table.when(all(&Row::step) == 0).once(note("a"));
  poll();
  const Handle second = table.when(all(&Row::step) == 0).recurrent(note("b"));
  EXPECT_FALSE(first.active());
  EXPECT_FALSE(first.remove());
  EXPECT_TRUE(second.active());
}

TEST_F(Predicates, ThereIsALimitThatIsNamed) {
  std::vector<Handle> handles;
  for (std::size_t i = 0; i < kMaxPredicates; ++i)
    handles.push_back(table.when(all(&Row::step) == 1).once());
  const auto one_more = [&] { static_cast<void>(table.when(all(&Row::step) == 1).once()); };
  EXPECT_TRUE(contains(what_is_thrown_by(one_more), "4096 predicates (kMaxPredicates)"));
  EXPECT_TRUE(handles[7].remove());
  EXPECT_EQ(what_is_thrown_by(one_more), "nothing");
}

TEST_F(Predicates, AtTheLimitOneMayStillReplaceItself) {
  std::vector<Handle> handles;
  for (std::size_t i = 2; i < kMaxPredicates; ++i)
    handles.push_back(table.when(all(&Row::step) == 1).once());
  static_cast<void>(table.when(all(&Row::step) == 0).once([this](auto& t) {
    t.when(all(&Row::step) == 2).once(note("a"));
  }));
  Handle recurrent = table.when(all(&Row::step) == 0).recurrent([&](auto& t) {
    EXPECT_TRUE(recurrent.remove());
    t.when(all(&Row::step) == 2).once(note("b"));
  });
  EXPECT_EQ(poll(), "");
  set(2);
  EXPECT_EQ(poll(), "ab");
}

/// What group and multicast are made of: objects that end their predicates when they go.
TEST_F(Predicates, OneMayOwnAnotherAndEndItAsItGoes) {
  struct Owner {
    Handle owned;
    ~Owner() { EXPECT_TRUE(owned.remove()); }
  };
  const auto add_pair = [this] {
    const auto owner = std::make_shared<Owner>();
    owner->owned = table.when(all(&Row::step) == 1).recurrent(note("owned"));
    return table.when(all(&Row::step) == 0).once([owner] { EXPECT_TRUE(owner->owned.active()); });
  };
  for (int i = 0; i < 3; ++i) add_pair();
  poll();  // which fires, and so ends, the owners
  set(1);
  EXPECT_EQ(poll(), "");
  Handle third = add_pair();
  EXPECT_EQ(poll(), "owned");
  EXPECT_TRUE(third.remove());
  EXPECT_EQ(poll(), "");
}

TEST(Detector, MayGoWithPredicatesThatEndOthersAsTheyGo) {
  sim::World world{sim::profile("ideal"), 1, 1};
  RowTable table{world.fabric(0)};
  struct Owner {
    Handle owned;
    ~Owner() { owned.remove(); }
  };
  for (int i = 0; i < 3; ++i) {
    const auto owner = std::make_shared<Owner>();
    static_cast<void>(table.when(all(&Row::step) == 1).once([owner] {}));
    owner->owned = table.when(all(&Row::step) == 1).once();
  }
}

TEST_F(Predicates, RowsThatDoNotExistAreRefusedAtRegistration) {
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { static_cast<void>(table.when(row(1, &Row::step) == 1).once()); }),
      "there is no row 1"));
}

TEST(PredicateOverNodes, TriggersPushAndTheOthersReact) {
  SimGroup<Row> group(3);
  group.make_all();
  for (Rank node = 0; node < 3; ++node) {
    auto& table = group[node];
    table.when(all(&Row::step) >= mine(&Row::step)).recurrent([](auto& t) {
      if (t.mine().step == 100) return;
      ++t.mine().step;
      t.push(&Row::step);
    });
    group.world.on(node, [] {});  // its last poll knew nothing of this predicate
  }
  EXPECT_TRUE(group.run_until([&] {
    int least = 1000;
    int most = 0;
    for (Rank node = 0; node < 3; ++node) {
      least = std::min(least, group[node].mine().step.load());
      most = std::max(most, group[node].mine().step.load());
    }
    EXPECT_LE(most - least, 1) << "they count in step";
    return least == 100;
  }));
}

TEST(PredicateOverNodes, AliveLeavesOutTheFailed) {
  SimGroup<Row> group(3);
  group.make_all();
  bool all_alive_are_there = false;
  group[0].when(all(&Row::step).alive() >= 1).once([&] { all_alive_are_there = true; });
  for (const Rank node : {0U, 1U}) {
    group[node].mine().step = 1;
    group[node].push();
  }
  group.settle();
  EXPECT_FALSE(all_alive_are_there);
  group.world.crash(2);
  EXPECT_TRUE(group.run_until([&] { return all_alive_are_there; }));
}

}  // namespace
}  // namespace dunlin
