#include <optional>
#include <stdexcept>
#include <utility>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/conformance/harness.hpp"

/// What an application gets wrong is answered, or harmless.
namespace dunlin::conformance {

namespace {

using Kind = Event::Kind;

}  // namespace

TEST_P(Misuse, AskingForAMemberThatDoesNotExistIsAnException) {
  start(2);
  EXPECT_THROW(static_cast<void>(node(0).member_name(2)), std::out_of_range);
  EXPECT_THROW(static_cast<void>(node(0).failure_text(2)), std::out_of_range);
}

TEST_P(Misuse, MembersKnowThemselvesAndEachOther) {
  start(3);
  for (Rank r = 0; r < 3; ++r) {
    EXPECT_EQ(node(r).rank(), r);
    EXPECT_EQ(node(r).size(), 3U);
    EXPECT_EQ(node(r).group(), node(0).group());
    for (Rank other = 0; other < 3; ++other) {
      EXPECT_EQ(node(r).member_name(other), node(0).member_name(other));
      EXPECT_FALSE(node(r).failed(other));
      EXPECT_TRUE(node(r).failure_text(other).empty());
    }
  }
}

TEST_P(Misuse, PrefetchingMemoryThatDoesNotExistDoesNothing) {
  start(2);
  const Shared box = share("box", 64);
  node(0).prefetch(1, box.id(0), 0, 64);
  node(0).prefetch(1, box.id(0), 63, 2);
  node(0).prefetch(1, box.id(0), UINT64_MAX, SIZE_MAX);
  node(0).prefetch(7, box.id(0), 0, 64);
  node(0).prefetch(1, RegionId{}, 0, 64);
  const std::uint64_t word = 1;
  post_and_finish(0, write(1, box.id(0), 0, &word, sizeof word));
}

TEST_P(Misuse, MemoryThatDoesNotExistIsNotReached) {
  start(2);
  const Shared box = share("box", 64);
  EXPECT_TRUE(node(0).reach(7, box.id(0)).empty());
  EXPECT_TRUE(node(0).reach(1, RegionId{}).empty());
  node(0).ring(7);
}

TEST_P(Misuse, AnnouncingNothingIsAnError) {
  start(2);
  expect_error([&] { node(0).announce(Region()); }, "region");
  Region region = node(0).allocate({.name = "box", .bytes = 64});
  const Region moved = std::move(region);
  expect_error([&] { node(0).announce(region); }, "region");  // NOLINT(bugprone-use-after-move)
  node(0).announce(moved);
}

TEST_P(Misuse, AnnouncingWhatIsNotForPeersIsAnError) {
  start(2);
  const Region shown = node(0).publish({.name = "shown", .bytes = 64});
  expect_error([&] { node(0).announce(shown); }, "shown");
  const Region& foreign = group().allocate(1, {.name = "box", .bytes = 64});
  expect_error([&] { node(0).announce(foreign); }, "region");
}

TEST_P(Misuse, AMovedRegionIsReleasedOnceByItsLastHolder) {
  start(2);
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64});
  std::optional<Region> last;
  {
    Region first = node(0).allocate({.name = "box", .bytes = 64});
    node(0).announce(first);
    Region second = std::move(first);
    EXPECT_TRUE(first.memory().empty());  // NOLINT(bugprone-use-after-move)
    last = std::move(second);
  }
  until("it is connected", [&] { return node(1).connected(0, theirs.id()); });
  const std::uint64_t one = 1;
  post_and_finish(1, write(0, theirs.id(), 0, &one, 8));
  EXPECT_EQ(memory::load(*reinterpret_cast<const std::uint64_t*>(last->memory().data())), 1U);
  last.reset();
  until("it is withdrawn", [&] { return seen(1, Kind::region_withdrawn, 0) == 1; });
  let_time_pass();
  EXPECT_EQ(seen(1, Kind::region_withdrawn, 0), 1U);
}

TEST_P(Misuse, ARegionThatIsAssignedOverIsReleased) {
  start(2);
  const Region& theirs = group().allocate(1, {.name = "old", .bytes = 64});
  Region region = node(0).allocate({.name = "old", .bytes = 64});
  node(0).announce(region);
  until("it is connected", [&] { return node(1).connected(0, theirs.id()); });
  Region fresh = node(0).allocate({.name = "new", .bytes = 128});
  region = std::move(fresh);
  EXPECT_EQ(region.memory().size(), 128U);
  until("the old one is withdrawn", [&] { return !node(1).connected(0, theirs.id()); });
  Region& self = region;
  region = std::move(self);
  EXPECT_EQ(region.memory().size(), 128U);
}

TEST_P(Misuse, ASubscriptionEndsWithItsLastHolder) {
  start(2);
  int calls = 0;
  {
    Subscription first =
        node(0).subscribe([&](const Event& e) { calls += e.kind == Kind::region_connected; });
    const Subscription second = std::move(first);
    share("one", 64);
    until("the event is seen", [&] { return calls > 0; });
  }
  calls = 0;
  share("two", 64);
  let_time_pass();
  EXPECT_EQ(calls, 0);
}

TEST_P(Misuse, ASubscriptionThatIsAssignedOverEnds) {
  start(2);
  int old_calls = 0;
  int new_calls = 0;
  Subscription subscription = node(0).subscribe([&](const Event&) { ++old_calls; });
  Subscription fresh = node(0).subscribe([&](const Event&) { ++new_calls; });
  subscription = std::move(fresh);
  share("one", 64);
  until("the event is seen", [&] { return new_calls > 0; });
  EXPECT_EQ(old_calls, 0);
}

TEST_P(Misuse, AGroupOfOneWorks) {
  start(1);
  const Shared box = share("box", 64);
  const std::uint64_t one = 1;
  post_and_finish(0, write(0, box.id(0), 0, &one, 8));
  EXPECT_EQ(box.load(0, 0), 1U);
  EXPECT_EQ(node(0).post(write(1, box.id(0), 0, &one, 8)).refusal, Refusal::unknown_peer);
}

TEST_P(Misuse, AFabricMayGoWithOperationsMessagesAndRegionsInFlight) {
  start(3);
  const Shared box = share("box", 4096);
  alignas(8) static std::byte source[4096];
  for (Rank r = 0; r < 3; ++r) {
    const Rank to = (r + 1) % 3;
    post(r, put(to, box.id(r), 0, source, sizeof source));
    send(r, to, 5, std::span(source).first(100));
    node(r).announce(group().allocate(r, {.name = "late", .bytes = 64}));
  }
}

}  // namespace dunlin::conformance
