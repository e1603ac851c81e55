#include <string>

#include <gtest/gtest.h>

#include "multicast/cast_group.hpp"
#include "support/published.hpp"

/// What an observer finds.
namespace dunlin::test {
namespace {

using multicast::Counters;

/// A counter of the member that has this view; UINT64_MAX if there is none of that name.
std::uint64_t shown(SubgroupView& view, const std::string& name) {
  for (const CounterView& counter : own_counters_of(view.fabric()))
    if (counter.name == "multicast." + name && counter.labels == "multicast=shown\ngeneration=1")
      return counter.words.front();
  return UINT64_MAX;
}

void expect_published(multicast::Mode mode) {
  SubgroupViewOptions options{
      .name = "shown", .generation = 1, .members = {0, 1}, .senders = {0, 1}};
  options.mode = mode;
  CastGroup group(2, sim::profile("ideal"), 1, options);
  group.make_all();
  group.work({});
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  group.expect_silence();
  for (std::size_t member = 0; member < 2; ++member) {
    const Counters& counters = group[member].counters();
    EXPECT_GT(counters.messages_delivered, 0U);
    EXPECT_EQ(shown(group[member], "messages"), counters.messages_delivered);
    EXPECT_EQ(shown(group[member], "bytes"), counters.bytes_delivered);
    EXPECT_EQ(shown(group[member], "nulls"), counters.nulls);
    EXPECT_EQ(shown(group[member], "receive_batches"), counters.receive_batches);
    EXPECT_EQ(shown(group[member], "send_batches"), counters.send_batches);
    EXPECT_EQ(shown(group[member], "deliver_batches"), counters.deliver_batches);
    EXPECT_GT(shown(group[member], "own_timed"), 0U);
    EXPECT_GT(shown(group[member], "own_ns"), 0U);
  }
}

TEST(Showing, HasAllThatHappenedOnceNothingHappensAnyMore) {
  expect_published(multicast::Mode::ordered);
  expect_published(multicast::Mode::unordered);
}

/// From the attempt that found none until the one that did.
TEST(Showing, HasTheTimeWithoutRoom) {
  SubgroupViewOptions options{.name = "shown", .generation = 1, .members = {0, 1}, .senders = {0}};
  options.ring_bytes = 4096;
  CastGroup group(2, sim::profile("ib100"), 1, options);
  group.make_all();
  group.work({.messages = 500, .most_bytes = 400, .burst = 500});
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  group.expect_silence();
  ASSERT_GT(group[0].counters().no_room, 0U);
  const std::uint64_t without_ns = shown(group[0], "no_room_ns");
  EXPECT_GT(without_ns, 1'000U);
  EXPECT_LT(without_ns, 50'000'000U) << "the time in which nobody sends does not count";
  EXPECT_EQ(shown(group[1], "no_room_ns"), 0U) << "it is no sender";
}

}  // namespace
}  // namespace dunlin::test
