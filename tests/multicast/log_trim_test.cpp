#include <gtest/gtest.h>

#include "multicast/durable_group.hpp"
#include "multicast/log_scribe.hpp"
#include "support/errors.hpp"

/// Durable subgroups whose logs do not keep everything.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;
using test::DurableMember;
using test::FoundLog;
using test::LogScribe;

const std::string kLater(4'000, ',');  // all of them are more than the agreement's ring

/// Two members of the last view have a log that was trimmed; that of the third ends before.
void write_a_trimmed_log(DurableGroup::Disks& disks) {
  const std::string text(3'000, '.');
  const auto shared = [&](LogScribe& log) {
    log.view(1, {"node0", "node1", "node2"}).messages(20, text);
  };
  for (const Rank rank : {0U, 1U})
    test::write_log(*disks[rank], [&](LogScribe& log) {
      shared(log);
      log.view(2, {"node0", "node1"}).messages(10, text).give_up().messages(40, kLater);
    });
  test::write_log(*disks[2], shared);
}
constexpr std::uint64_t kOwnEnd = 22;
constexpr std::uint64_t kOthersEnd = 73;

bool has_half_a_copy(const log::SimulatedDisk& disk) {
  return std::ranges::any_of(disk.names("log"), [](const std::string& name) {
    return name.find(".2.log") != std::string::npos;
  });
}

/// MC-L8. Everything crashes while the third one is brought up to the others.
TEST(LogTrim, KeepsALogUntilAllOfTheTrimmedOneIsBesideIt) {
  std::uint32_t originals = 0;
  std::uint32_t halves = 0;
  std::uint32_t copies = 0;
  for (std::uint64_t at_ns = 0; at_ns < 1'500'000; at_ns += 10'000) {
    SCOPED_TRACE(std::to_string(at_ns) + " ns");
    auto disks = DurableGroup::make_disks(3, 1);
    write_a_trimmed_log(disks);
    {
      DurableGroup group(disks, 1);
      group.world.run_for(at_ns);
    }
    disks[2]->crash();
    const bool half = has_half_a_copy(*disks[2]);
    const FoundLog log = test::read_log(*disks[2]);
    if (log.state.end.number == kOwnEnd) {
      EXPECT_EQ(log.state.first.number, 1U);
      EXPECT_EQ(log.messages.size(), 20U);
      ++(half ? halves : originals);
    } else {
      EXPECT_GE(log.state.end.number, kOthersEnd);
      EXPECT_GT(log.state.first.number, 1U);
      EXPECT_EQ(log.messages, std::vector(40, kLater)) << "those that were not given up";
      ++copies;
    }
  }
  EXPECT_GT(originals, 0U);
  EXPECT_GT(halves, 5U);
  EXPECT_GT(copies, 10U);
}

/// The view ends meanwhile, because a member that has no log yet crashes.
TEST(LogTrim, CopiesATrimmedLogAgainInTheNextView) {
  std::uint32_t halves = 0;
  for (std::uint64_t at_ns = 0; at_ns < 3'000'000; at_ns += 100'000) {
    SCOPED_TRACE(std::to_string(at_ns) + " ns");
    auto disks = DurableGroup::make_disks(4, 1);
    write_a_trimmed_log(disks);
    DurableGroup group(disks, 1);
    group.world.run_for(at_ns);
    halves += has_half_a_copy(*disks[2]) ? 1 : 0;
    group.crash(3);
    group.send(2);
    ASSERT_TRUE(group.run_until_all_delivered(6));
    for (const Rank rank : {0U, 1U, 2U}) {
      EXPECT_EQ(group.members[rank].error, "");
      EXPECT_EQ(group.members[rank].replayed, std::vector(40, kLater));
      disks[rank]->crash();
      EXPECT_EQ(test::read_log(*disks[rank]).state.end, test::read_log(*disks[0]).state.end);
    }
  }
  EXPECT_GT(halves, 5U);
}

std::uint64_t bytes_of(const std::vector<std::string>& texts) {
  std::uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

TEST(LogTrim, BoundsTheBytesOfALogByASnapshotOfTheState) {
  const multicast::LogTrim trim{.every_bytes = 2'000};
  auto disks = DurableGroup::make_disks(2, 1);
  std::vector<std::string> all;
  {
    DurableGroup group(disks, 1, "a", sim::profile("ib100"), {}, trim);
    group.send(500);
    ASSERT_TRUE(group.run_until_all_delivered(1'000));
    all = group.members[0].delivered;
  }
  const std::uint64_t state_bytes = test::state_of(all).size();
  EXPECT_GT(disks[0]->used(), state_bytes / 2);
  EXPECT_LT(disks[0]->used(), state_bytes + 40'000) << "of the messages, the last ones are there";
  for (auto& disk : disks) disk->crash();
  DurableGroup group(disks, 2, "b", sim::profile("ib100"), {}, trim);
  group.send(1);
  ASSERT_TRUE(group.run_until_all_delivered(2));
  for (const DurableMember& member : group.members) {
    EXPECT_EQ(member.replayed, all);
    EXPECT_EQ(member.loaded, 1U);
  }
}

/// What a member replays after it has sent for some time, and started again.
std::vector<std::string> replayed_after(const multicast::LogTrim& trim, std::uint64_t pause_ns,
                                        std::vector<std::string>& all) {
  auto disks = DurableGroup::make_disks(2, 1);
  {
    DurableGroup group(disks, 1, "a", sim::profile("ib100"), {}, trim);
    for (std::uint64_t part = 1; part <= 10; ++part) {
      group.send(20);
      EXPECT_TRUE(group.run_until_all_delivered(part * 40));
      group.world.run_for(pause_ns);
    }
    all = group.members[0].delivered;
  }
  for (auto& disk : disks) disk->crash();
  DurableGroup group(disks, 2, "b", sim::profile("ib100"), {}, trim);
  group.send(1);
  EXPECT_TRUE(group.run_until_all_delivered(2));
  EXPECT_EQ(group.members[0].error, "");
  return group.members[0].replayed;
}
bool is_suffix(const std::vector<std::string>& part, const std::vector<std::string>& all) {
  return part.size() <= all.size() && std::equal(part.rbegin(), part.rend(), all.rbegin());
}

TEST(LogTrim, GivesUpMessagesBehindWhichThereAreEnoughBytes) {
  std::vector<std::string> all;
  const std::vector<std::string> kept =
      replayed_after({.every_bytes = 1'000, .keeps_state = false, .least_bytes = 20'000}, 0, all);
  EXPECT_TRUE(is_suffix(kept, all));
  EXPECT_GE(bytes_of(kept), 20'000U);
  EXPECT_LT(bytes_of(kept), 40'000U);
  EXPECT_GT(bytes_of(all), 60'000U);
}

TEST(LogTrim, GivesUpMessagesThatAreOldEnough) {
  std::vector<std::string> all;
  const std::vector<std::string> kept = replayed_after(
      {.every_bytes = 1'000, .keeps_state = false, .least_seconds = 3}, 1'000'000'000, all);
  EXPECT_TRUE(is_suffix(kept, all));
  EXPECT_GE(kept.size(), 3 * 40U);
  EXPECT_LE(kept.size(), 6 * 40U);
}

TEST(LogTrim, NeedsWhatMakesTheState) {
  auto disks = DurableGroup::make_disks(1, 1);
  sim::World world(sim::profile("ib100"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
  MulticastOptions options = DurableGroup::options(disks[0].get());
  options.log_trim.every_bytes = 100;
  Multicast cast(group, "orders", options);
  std::string error;
  bool sent = false;
  world.attach(0, [&]() -> std::size_t {
    if (!error.empty()) return 0;
    const std::string text(200, '.');
    try {
      if (!sent) sent = cast.send(std::as_bytes(std::span(text))) == multicast::SendResult::sent;
      return group.poll();
    } catch (const Error& e) {
      error = e.what();
      return 1;
    }
  });
  ASSERT_TRUE(world.run_until([&] { return !error.empty(); }, 100'000'000));
  EXPECT_TRUE(contains(error, "log_trim needs on_state with `save`")) << error;
}

TEST(LogTrim, NeedsWhatTakesTheStateThatALogBeginsWith) {
  auto disks = DurableGroup::make_disks(1, 1);
  {
    DurableGroup group(disks, 1, "a", sim::profile("ib100"), {}, {.every_bytes = 500});
    group.send(50);
    ASSERT_TRUE(group.run_until_all_delivered(50));
  }
  disks[0]->crash();
  DurableGroup group(disks, 2, "b");
  ASSERT_TRUE(group.world.run_until([&] { return !group.members[0].error.empty(); }, 100'000'000));
  EXPECT_TRUE(contains(group.members[0].error,
                       "it begins with a snapshot of the state, and this member has no `load`"))
      << group.members[0].error;
}

}  // namespace
}  // namespace dunlin
