#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "support/rounds.hpp"
#include "table/sim_group.hpp"
#include "table/witness.hpp"

/// What a reader may see at any moment: data before its guard (TAB-T3), values whole (TAB-C1 to
/// TAB-C3), list entries that are what their index says (TAB-C4), and nothing going back. Looked at
/// after every event of runs on a network that delays, reorders and splits whatever it may.
namespace dunlin {
namespace {

using test::rough_network;
using test::SimGroup;
using test::Witness;
using test::WitnessedRow;
using test::write_step;

/// Node 0 writes and pushes; the others are watched.
void run(const sim::Profile& profile, std::uint64_t seed, std::uint64_t steps,
         std::uint64_t stores_per_push) {
  SimGroup<WitnessedRow> group(3, profile, seed);
  group.make(0);
  group.make(1);
  std::uint64_t n = 0;
  group.world.attach(0, [&]() -> std::size_t {
    if (n >= steps) return 0;
    const std::uint64_t stores = 1 + group.world.random() % stores_per_push;
    for (std::uint64_t i = 0; i < stores; ++i) write_step(group[0].mine(), ++n);
    group[0].push();
    return 1;
  });
  // The third one arrives in the middle, and must be caught up with.
  group.world.at(20'000, [&] { group.make(2); });
  std::array<Witness, 2> witnesses;
  const auto look = [&] {
    witnesses[0].look(group[1][0]);
    if (group.world.now_ns() > 20'001) witnesses[1].look(group[2][0]);
    return testing::Test::HasFatalFailure() ||
           (n >= steps && group[1][0].last == n && group.world.now_ns() > 20'001 &&
            group[2][0].last == n);
  };
  ASSERT_TRUE(group.run_until(look)) << "seed " << seed;
  ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
}

TEST(Order, DataComesBeforeItsGuard) {
  for (std::uint64_t seed = 0; seed < test::rounds(300); ++seed) {
    ASSERT_NO_FATAL_FAILURE(run(rough_network(), seed, 40, 1)) << "seed " << seed;
  }
}

TEST(Order, DataComesBeforeItsGuardHoweverManyStoresAPushPublishes) {
  for (std::uint64_t seed = 0; seed < test::rounds(300); ++seed) {
    ASSERT_NO_FATAL_FAILURE(run(rough_network(), seed, 100, 4)) << "seed " << seed;
  }
}

TEST(Order, HoldsWithFullQueues) {
  sim::Profile narrow = rough_network();
  narrow.queue_slots = 16;
  for (std::uint64_t seed = 0; seed < test::rounds(200); ++seed) {
    ASSERT_NO_FATAL_FAILURE(run(narrow, seed, 100, 3)) << "seed " << seed;
  }
}

TEST(Order, HoldsOnTheNetworksThatThereAre) {
  for (const sim::Profile& profile : sim::profiles()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ASSERT_NO_FATAL_FAILURE(run(profile, seed, 60, 3)) << profile.name << ", seed " << seed;
    }
  }
}

TEST(Order, TheSameSeedGivesTheSameRun) {
  const auto digest = [](std::uint64_t seed) {
    SimGroup<WitnessedRow> group(2, rough_network(), seed);
    group.make_all();
    for (std::uint64_t n = 1; n < 20; ++n) {
      write_step(group[0].mine(), n);
      group[0].push();
      group.world.run_for(700);
    }
    return group.world.digest();
  };
  EXPECT_EQ(digest(3), digest(3));
  EXPECT_NE(digest(3), digest(4));
}

}  // namespace
}  // namespace dunlin
