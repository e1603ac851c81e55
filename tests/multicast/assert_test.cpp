#include "assert.hpp"

#include <gtest/gtest.h>

#include "log/log.hpp"
#include "multicast/ring.hpp"

/// What becomes of a process whose assertion does not hold.
namespace dunlin {
namespace {

TEST(AssertionsDeathTest, SayWhereAndWhatDoesNotHold) {
  const int rows = 1;
  EXPECT_DEATH(DUNLIN_ASSERT_ALWAYS(rows > 2, "TAB-T1: there are rows"),
               "assert_test.cpp:[0-9]+: this does not hold: TAB-T1: there are rows \\(rows > 2\\)");
}

TEST(AssertionsDeathTest, HoldOnTheDataPathUnlessTheTreeIsARelease) {
  bool evaluated = false;
  const auto fails = [&] {
    evaluated = true;
    return false;
  };
#ifdef NDEBUG
  DUNLIN_ASSERT(fails(), "TAB-T1: never");
  static_cast<void>(fails);
#else
  EXPECT_DEATH(DUNLIN_ASSERT(fails(), "TAB-T1: never"), "TAB-T1: never");
#endif
  EXPECT_FALSE(evaluated);
}

TEST(Assertions, EvaluateAConditionOnce) {
  int evaluated = 0;
  DUNLIN_ASSERT_ALWAYS(++evaluated == 1, "TAB-T1: once");
  EXPECT_EQ(evaluated, 1);
}

/// A precondition of the library, in every tree.
TEST(AssertionsDeathTest, EndACallerThatBreaksAPrecondition) {
  log::Batch batch;
  batch.append(1, {}, {});
  EXPECT_DEATH(batch.keep(2), "a batch keeps no more records than it has");
  batch.keep(1);
  EXPECT_EQ(batch.records(), 1U);
}

/// Whatever a peer has written into a ring, its reader checks it, and goes on (MC-R3).
TEST(Assertions, HoldWhateverAPeerHasWritten) {
  for (const std::uint64_t spoilt : {UINT64_MAX, std::uint64_t{0xffff'fffe}, std::uint64_t{77}}) {
    alignas(64) std::uint64_t words[64];
    for (std::uint64_t& word : words) word = spoilt;
    multicast::RingCursor cursor(
        {.memory = reinterpret_cast<std::byte*>(words), .bytes = sizeof words});
    for (int records = 0; records < 100; ++records) {
      if (cursor.next(UINT64_MAX - 1) == multicast::kNoSlot) break;
      const multicast::Record record = cursor.take();
      const auto* const begin = reinterpret_cast<const std::byte*>(words);
      EXPECT_GE(record.message.data(), begin);
      EXPECT_LE(record.message.data() + record.message.size(), begin + sizeof words);
    }
  }
}

}  // namespace
}  // namespace dunlin
