#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/traffic.hpp"
#include "support/rounds.hpp"

/// One death at any moment of a move of keys, in a store with two copies of each key that all
/// members use: nothing that was said is taken back.
namespace dunlin {
namespace {

using remote::Status;
using test::CopiedMortals;
using test::Joining;
using test::kLate;
using test::Traffic;
using test::two_copies;

constexpr std::size_t kKeys = 30;
constexpr std::uint64_t kWarmUpNs = 1'000'000;
constexpr std::uint64_t kPatienceNs = 100'000'000;  // with all the traffic
constexpr std::uint64_t kOver = UINT64_MAX;         // in place of a moment: when the move is over

/// Home 1 of five leaves, and all use the store.
struct Leaving : CopiedMortals {
  static constexpr Rank kMover = 1;
  explicit Leaving(std::uint64_t index_keys) : CopiedMortals(6, 5, two_copies(0, index_keys)) {}
  void begin_move(StoreOperation& move) { at(kMover).leave(move); }
  static std::vector<Rank> members() { return {0, 1, 2, 3, 4, 5}; }
  static std::vector<Rank> homes() { return {0, 1, 2, 3, 4}; }
  /// Where the first copies go, and the second ones.
  static bool may_be_lost_with(Rank dies) { return dies == 2 || dies == 3; }
};

/// A member that has joined takes keys of three homes.
struct Taking : Joining {
  static constexpr Rank kMover = kLate;
  explicit Taking(std::uint64_t index_keys) : Joining(two_copies(0, index_keys)) {
    join(kLate);
    options.contributes = false;
    join(kLate + 1);
  }
  void begin_move(StoreOperation& move) { at(kMover).settle(move); }
  static std::vector<Rank> members() { return {0, 1, 2, kLate, kLate + 1}; }
  static std::vector<Rank> homes() { return {0, 1, 2, kLate}; }
  /// The home that gives.
  static bool may_be_lost_with(Rank dies) { return dies <= 2; }
};

/// A move, and what goes on meanwhile. Ends before the members do.
template <class Members>
struct Moving {
  explicit Moving(std::uint64_t index_keys)
      : members(index_keys),
        traffic(
            members.world, [this](Rank rank) -> Store& { return members.at(rank); },
            Members::members(), kKeys) {
    traffic.run_for(kWarmUpNs);
  }
  void begin() { members.begin_move(move); }
  /// How long the move takes while nobody dies.
  static std::uint64_t duration(std::uint64_t index_keys) {
    Moving calm(index_keys);
    const std::uint64_t begin = calm.members.world.now_ns();
    calm.begin();
    EXPECT_TRUE(calm.traffic.run_until([&] { return calm.move.finished(); }, kPatienceNs));
    EXPECT_EQ(remote::describe(calm.move.status()), "done");
    const std::uint64_t took = calm.members.world.now_ns() - begin;
    calm.traffic.stop();
    EXPECT_TRUE(calm.run_until_complete({}));
    for (const Rank by : Members::members()) calm.traffic.read_all(by);
    auto count = calm.members.at(0).count();
    EXPECT_EQ(remote::describe(calm.members.end_of(count)), "done");
    EXPECT_EQ(count.keys(), calm.traffic.present());
    return took;
  }
  void die(Rank rank) {
    members.world.crash(rank);
    traffic.forget(rank);
    dead.push_back(rank);
  }
  [[nodiscard]] bool is_dead(Rank rank) const {
    return std::ranges::find(dead, rank) != dead.end();
  }
  bool run_until_complete(const std::vector<Rank>& without) {
    return traffic.run_until(
        [&] {
          for (const Rank rank : Members::members()) {
            if (is_dead(rank)) continue;
            for (const Rank gone : without)
              if (members.member(rank).progress.contains(gone)) return false;
            if (!members.at(rank).statistics().copies_complete) return false;
          }
          return true;
        },
        kPatienceNs);
  }
  /// After its member's death it need not end.
  void expect_end(Rank dies) {
    if (dies == Members::kMover) return;
    ASSERT_TRUE(traffic.run_until([&] { return move.finished(); }, kPatienceNs)) << "it hangs";
    EXPECT_TRUE(move.status() == Status::ok ||
                (Members::may_be_lost_with(dies) && move.status() == Status::lost))
        << remote::describe(move.status());
  }
  void expect_all() {
    traffic.stop();
    for (const Rank by : Members::members())
      if (!is_dead(by)) traffic.read_all(by);
    traffic.go_on();
  }
  /// One dies, and a further home when the copies have been made again.
  void expect_nothing_lost(Rank dies) {
    die(dies);
    expect_end(dies);
    expect_all();
    ASSERT_TRUE(run_until_complete({dies})) << "STO-C4: copies are not made again\n"
                                            << members.states();
    Rank next = (dies + 1) % 5;
    while (next == Members::kMover || next == dies || next > Members::homes().back())
      next = (next + 1) % 5;
    die(next);
    expect_all();
  }
  void audit(Rank dies, std::uint64_t moment) {
    SCOPED_TRACE("member " + std::to_string(dies) + " dies " + std::to_string(moment) +
                 " ns after the move began");
    begin();
    if (moment == kOver) {
      EXPECT_TRUE(traffic.run_until([&] { return move.finished(); }, 10 * kPatienceNs))
          << "it hangs\n"
          << members.states();
    } else {
      traffic.run_for(moment);
    }
    is_over = move.finished();
    expect_nothing_lost(dies);
  }

  Members members;
  Traffic traffic;
  StoreOperation move;
  std::vector<Rank> dead;
  bool is_over = false;
};

template <class Members>
void die_at_each_moment(std::uint64_t index_keys, std::uint64_t moments) {
  const std::uint64_t took = Moving<Members>::duration(index_keys);
  std::uint64_t before = 0, after = 0;
  for (const Rank dies : Members::members())
    for (std::uint64_t i = 0; i <= moments + 1; ++i) {
      if (testing::Test::HasFailure()) return;
      Moving<Members> moving(index_keys);
      // Each victim has moments of its own, and one when the move is surely over.
      moving.audit(dies, i > moments ? kOver : took * (i * 6 + dies) / (moments * 6));
      ++(moving.is_over ? after : before);
    }
  EXPECT_GT(before, 0U);
  EXPECT_GT(after, 0U);
}

TEST(StoreMovesDeath, AtAnyMomentOfALeaveLosesNothing) {
  die_at_each_moment<Leaving>(60, test::rounds(14));
}
TEST(StoreMovesDeath, AtAnyMomentOfALeaveOfFewChainsLosesNothing) {
  die_at_each_moment<Leaving>(8, test::rounds(6));
}
/// The homes die here, too, and by STO-M12 the member that takes has the copies.
TEST(StoreMovesDeath, AtAnyMomentOfATakeLosesNothing) {
  die_at_each_moment<Taking>(60, test::rounds(14));
}
TEST(StoreMovesDeath, AtAnyMomentOfATakeOfFewChainsLosesNothing) {
  die_at_each_moment<Taking>(8, test::rounds(6));
}

/// Amid the move of the chains, in small steps.
template <class Members>
void die_while_chains_move() {
  const std::uint64_t kSteps = test::rounds(6), kStepNs = 12'000;
  std::uint64_t amid = 0;
  for (const Rank dies : Members::members())
    for (std::uint64_t i = 0; i < kSteps; ++i) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies " + std::to_string(i * kStepNs) +
                   " ns after the first keys had gone");
      Moving<Members> moving(60);
      moving.begin();
      const auto has_begun = [&] {
        for (const Rank rank : Members::homes())
          if (moving.members.at(rank).counters().at("keys_moved") > 0) return true;
        return false;
      };
      ASSERT_TRUE(moving.traffic.run_until(has_begun, kPatienceNs));
      moving.traffic.run_for(i * kStepNs);
      amid += moving.move.finished() ? 0 : 1;
      moving.expect_nothing_lost(dies);
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(amid, 0U);
}

TEST(StoreMovesDeath, WhileChainsLeaveLosesNothing) { die_while_chains_move<Leaving>(); }
TEST(StoreMovesDeath, WhileChainsAreTakenLosesNothing) { die_while_chains_move<Taking>(); }

/// The home hangs: its memory can still be read, and it does not know that it was removed.
template <class Members>
void hang_at_each_moment() {
  const std::uint64_t took = Moving<Members>::duration(60);
  const std::uint64_t kHangs = test::rounds(10);
  for (const Rank hangs : Members::homes())
    for (std::uint64_t i = 0; i < kHangs; ++i) {
      SCOPED_TRACE("home " + std::to_string(hangs) + " hangs at moment " + std::to_string(i));
      Moving<Members> moving(60);
      moving.begin();
      moving.traffic.run_for(took * i / kHangs);
      moving.members.world.hang(hangs);
      moving.traffic.forget(hangs);
      moving.dead.push_back(hangs);
      moving.expect_end(hangs);
      moving.expect_all();
      if (testing::Test::HasFailure()) return;
    }
}

TEST(StoreMovesDeath, AHomeThatHangsAmidALeaveLosesNothing) { hang_at_each_moment<Leaving>(); }
TEST(StoreMovesDeath, AHomeThatHangsAmidATakeLosesNothing) { hang_at_each_moment<Taking>(); }

/// Keys that nobody changes are in each scan once, and erased ones in none.
template <class Members>
void scan_while_one_dies() {
  const std::uint64_t took = Moving<Members>::duration(60);
  const std::uint64_t kScans = test::rounds(6);
  for (const Rank dies : Members::members())
    for (std::uint64_t i = 0; i < kScans; ++i) {
      SCOPED_TRACE("member " + std::to_string(dies) + " dies at moment " + std::to_string(i));
      Members members(60);
      members.fill(40);
      for (int key = 0; key < 40; key += 3) members.erase(2, test::name_of(key));
      StoreOperation move;
      members.begin_move(move);
      const std::uint64_t at = members.world.now_ns() + took * i / kScans;
      members.world.at(at, [&] { members.world.crash(dies); });
      const Rank by = dies == Members::members().back() ? 0 : Members::members().back();
      for (int scan = 0; scan < 3 || members.world.now_ns() < at; ++scan)
        EXPECT_EQ(members.scanned(by, 2'000), members.expected) << "STO-C3: scan " << scan;
      if (dies != Members::kMover) {
        EXPECT_TRUE(members.world.run_until([&] { return move.finished(); }, kPatienceNs))
            << "it hangs";
      }
      EXPECT_EQ(members.scanned(by), members.expected) << "STO-C3";
      if (testing::Test::HasFailure()) return;
    }
}

TEST(StoreMovesDeath, ScansGoOnAmidALeave) { scan_while_one_dies<Leaving>(); }
TEST(StoreMovesDeath, ScansGoOnAmidATake) { scan_while_one_dies<Taking>(); }

}  // namespace
}  // namespace dunlin
