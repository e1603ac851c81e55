#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/cast_group.hpp"
#include "multicast/order.hpp"

/// Senders that are silent for long are left out of the rounds until they speak (MC-B7).
namespace dunlin::multicast {
namespace {

using test::CastGroup;
using test::Plan;

SubgroupViewOptions among(std::uint32_t members, std::uint32_t senders) {
  SubgroupViewOptions options{
      .name = "test", .generation = 1, .members = {}, .senders = {}, .ring_bytes = 4096};
  options.members.resize(members);
  std::iota(options.members.begin(), options.members.end(), 0U);
  options.senders.resize(senders);
  std::iota(options.senders.begin(), options.senders.end(), 0U);
  return options;
}

/// How many writes all members post for each message, if only the sender of the highest rank
/// speaks, and each message has been delivered before the next one is sent.
double writes_a_message(SubgroupViewOptions options) {
  constexpr std::uint32_t kMessages = 500;
  const auto members = static_cast<std::uint32_t>(options.members.size());
  CastGroup group(members, sim::profile("ib100"), 1, options);
  group.make_all();
  group.work({.messages = kMessages, .gap_ns = 40'000});
  for (const std::uint32_t sender : options.senders)
    if (sender != options.senders.back()) group.quit(sender);
  group.run_to_the_end();
  group.expect_silence();
  return static_cast<double>(group.writes()) / kMessages;
}

TEST(SilentSenders, CostNoMoreThanMembersThatAreNoSenders) {
  const SubgroupViewOptions all = among(8, 8);
  SubgroupViewOptions one = all;
  one.senders = {7};
  SubgroupViewOptions waited_for = all;
  waited_for.switches.nulls_ahead = false;
  const double alone = writes_a_message(one);
  EXPECT_LE(writes_a_message(all), 1.1 * alone);
  EXPECT_GE(writes_a_message(waited_for), 1.7 * alone);
}

TEST(SilentSenders, SpeakAgainAtOnce) {
  CastGroup group(3, sim::profile("ib100"), 1, among(3, 3));
  group.make_all();
  group.work({.messages = 20'000, .burst = 4});
  group.quit(1);
  group.speaks_from(2, 100'000);
  group.world.run_for(50'000);
  ASSERT_GT(group.auditor.log(2).size(), 100U) << "the first sender has spoken alone";
  group.quit(0);
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  EXPECT_GT(group[1].counters().nulls, 1'000U);
  group.expect_silence();
}

TEST(SilentSenders, TakeNullsAheadOnlyAfterSeveralTimes) {
  using order::kMostRoundsAhead;
  using order::kNullsUntilLeftOut;
  using order::nulls_up_to;
  EXPECT_EQ(nulls_up_to(100, 60, kNullsUntilLeftOut - 1), 100U);
  EXPECT_EQ(nulls_up_to(100, 60, kNullsUntilLeftOut), 160U);
  EXPECT_EQ(nulls_up_to(100, kMostRoundsAhead + 1, UINT64_MAX), 100 + kMostRoundsAhead);
}

}  // namespace
}  // namespace dunlin::multicast
