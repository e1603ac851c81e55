#include "fabric/shm_group.hpp"

/// What begin_join() has of its own; tests/fabric/conformance/forming.cpp has what all have.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::what_is_thrown_by;

/// Polls until it throws.
std::string fault_of(PendingJoin& pending_join) {
  return what_is_thrown_by([&] {
    while (!pending_join.poll()) std::this_thread::yield();
  });
}

TEST(ShmBeginJoin, SaysAtOnceWhatIsWrongWithTheOptions) {
  const std::string text = what_is_thrown_by(
      [] { static_cast<void>(begin_join({.group = fresh_group(), .members = 0})); });
  EXPECT_FALSE(text.empty());
}

TEST(ShmBeginJoin, NamesTheMissingWhenTheTimeIsUpAndIsOverThen) {
  const auto pending_join =
      begin_join({.group = fresh_group(), .members = 3, .rank = 0, .timeout_ms = 20});
  const std::string text = fault_of(*pending_join);
  EXPECT_TRUE(contains(text, "1 of 3 members came within 20 ms")) << text;
  EXPECT_TRUE(contains(text, "rank 1")) << text;
  EXPECT_TRUE(contains(fault_of(*pending_join), "is over"));
}

TEST(ShmBeginJoin, DoesNotBlockWhereItsPlaceIsTaken) {
  const std::string group = fresh_group();
  const auto member = join({.group = group, .members = 1});
  const auto pending_join = begin_join({.group = group, .members = 1});
  EXPECT_EQ(pending_join->poll(), nullptr) << "its holder may be dying";
  EXPECT_TRUE(contains(fault_of(*pending_join), "is already running"));
}

TEST(ShmBeginJoin, MeetsThoseWhoJoin) {
  const std::string group = fresh_group();
  std::unique_ptr<Fabric> blocking;
  std::thread thread([&] { blocking = join({.group = group, .members = 2, .rank = 0}); });
  const auto pending_join = begin_join({.group = group, .members = 2, .rank = 1});
  std::unique_ptr<Fabric> stepwise;
  while (!(stepwise = pending_join->poll())) std::this_thread::yield();
  thread.join();
  EXPECT_EQ(stepwise->rank(), 1U);
  EXPECT_EQ(blocking->rank(), 0U);
}

}  // namespace
}  // namespace dunlin
