#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "table/sim_group.hpp"

/// What a reader may see at any moment: data before its guard (T3), values whole (C1 to C3), list
/// entries that are what their index says (C4), and nothing going back. Looked at after every event
/// of runs on a network that delays, reorders and splits whatever it may.
namespace dunlin {
namespace {

using test::rough_network;
using test::SimGroup;

using Block = std::array<std::uint64_t, 20>;  // three lines

Block block(std::uint64_t n) {
  Block b;
  b.fill(n);
  return b;
}

/// Each column is published after the one before it.
struct Row {
  Cell<std::uint64_t> first;
  std::array<Cell<std::uint64_t>, 20> many;
  Cell<std::uint64_t> second;
  Versioned<Block> versioned;
  Cell<std::array<std::uint64_t, 8>> wide;
  Cell<std::uint64_t> third;
  List<Block, 4> list;
  Cell<std::uint64_t> last;
};

void write(Row& row, std::uint64_t n) {
  row.first = n;
  for (auto& entry : row.many) entry = n;
  row.second = n;
  row.versioned = block(n);
  std::array<std::uint64_t, 8> wide;
  wide.fill(n);
  row.wide = wide;
  row.third = n;
  row.list.truncate_before(row.list.end_index() - std::min<std::uint64_t>(3, row.list.size()));
  ASSERT_TRUE(row.list.append(block(row.list.end_index())));
  row.last = n;
}

/// What one reader has seen of one row so far; each look must find it consistent and no older.
class Witness {
 public:
  void look(const Row& row) {
    const std::uint64_t last = row.last.load();
    const std::uint64_t end = row.list.end_index();
    const std::uint64_t third = row.third.load();
    const auto wide = row.wide.load();
    const Block versioned = row.versioned.load();
    const std::uint64_t second = row.second.load();
    std::uint64_t least = UINT64_MAX;
    for (const auto& entry : row.many) least = std::min(least, entry.load());
    const std::uint64_t first = row.first.load();

    for (const std::uint64_t word : versioned) ASSERT_EQ(word, versioned[0]) << "torn";
    for (const std::uint64_t word : wide) ASSERT_EQ(word, wide[0]) << "torn";
    row.list.visit_from(0, [](std::uint64_t i, const Block& b) { ASSERT_EQ(b, block(i)); });
    // One value was appended with each step.
    ASSERT_LE(last, end);
    ASSERT_LE(last, third);
    ASSERT_LE(third, wide[0]);
    ASSERT_LE(wide[0], versioned[0]);
    ASSERT_LE(versioned[0], second);
    ASSERT_LE(second, least);
    ASSERT_LE(least, first);

    ASSERT_GE(last, last_);
    ASSERT_GE(versioned[0], versioned_) << "a versioned cell went back";
    ASSERT_GE(wide[0], wide_) << "a wide cell went back";
    ASSERT_GE(end, end_);
    ASSERT_GE(row.versioned.version(), version_);
    last_ = last;
    versioned_ = versioned[0];
    wide_ = wide[0];
    end_ = end;
    version_ = row.versioned.version();
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t versioned_ = 0;
  std::uint64_t wide_ = 0;
  std::uint64_t end_ = 0;
  std::uint32_t version_ = 0;
};

/// Node 0 writes and pushes; the others are watched.
void run(const sim::Profile& profile, std::uint64_t seed, std::uint64_t steps,
         std::uint64_t stores_per_push) {
  SimGroup<Row> group(3, profile, seed);
  group.make(0);
  group.make(1);
  std::uint64_t n = 0;
  group.world.attach(0, [&]() -> std::size_t {
    if (n >= steps) return 0;
    const std::uint64_t stores = 1 + group.world.random() % stores_per_push;
    for (std::uint64_t i = 0; i < stores; ++i) write(group[0].mine(), ++n);
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
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ASSERT_NO_FATAL_FAILURE(run(rough_network(), seed, 40, 1)) << "seed " << seed;
  }
}

TEST(Order, DataComesBeforeItsGuardHoweverManyStoresAPushPublishes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ASSERT_NO_FATAL_FAILURE(run(rough_network(), seed, 100, 4)) << "seed " << seed;
  }
}

TEST(Order, HoldsWithFullQueues) {
  sim::Profile narrow = rough_network();
  narrow.queue_slots = 16;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
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
    SimGroup<Row> group(2, rough_network(), seed);
    group.make_all();
    for (std::uint64_t n = 1; n < 20; ++n) {
      write(group[0].mine(), n);
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
