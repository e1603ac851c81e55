#include <set>

#include <gtest/gtest.h>

#include "multicast/durable_group.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Durable subgroups whose members all crash, and start again on what is on their disks.
namespace dunlin {
namespace {

using test::DurableGroup;
using test::DurableMember;
using test::FoundLog;
using test::is_prefix;

/// Some time later a member crashes, or its disk fails.
void let_one_fail(DurableGroup& group, DurableGroup::Disks& disks) {
  group.world.run_for(1 + group.draw(1'500'000));
  const auto victim = static_cast<Rank>(group.draw(disks.size()));
  if (group.draw(2) == 0) {
    group.crash(victim);
  } else {
    disks[victim]->fail_next_sync();
  }
}

/// Of the logs of every other seed a part goes all the time.
multicast::LogTrim trim_of(std::uint64_t seed) {
  return {.every_bytes = seed % 2 == 0 ? 0 : 500 + seed % 7 * 400};
}

/// After everybody has crashed: the longest log of the last view has what anybody has delivered.
void crash_all(std::uint64_t seed, std::uint64_t& delivered, std::uint64_t& views) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto members = static_cast<std::uint32_t>(2 + seed % 4);
  auto disks = DurableGroup::make_disks(members, seed);
  DurableGroup group(disks, seed, "a", sim::profile("ib100"), {}, trim_of(seed));
  group.send(20 + group.draw(60));
  for (std::uint64_t faults = group.draw(3); faults > 0; --faults) let_one_fail(group, disks);
  group.world.run_for(1 + group.draw(3'000'000));
  std::vector<FoundLog> logs;
  const FoundLog* longest = nullptr;
  for (auto& disk : disks) {
    disk->crash();
    logs.push_back(test::read_log(*disk));
  }
  ASSERT_NO_FATAL_FAILURE(test::expect_no_log_to_pass_for_lost(logs));
  for (const FoundLog& log : logs)
    if (longest == nullptr || std::pair(log.view(), log.state.end.number) >
                                  std::pair(longest->view(), longest->state.end.number))
      longest = &log;
  for (std::uint32_t i = 0; i < members; ++i) {
    const DurableMember& member = group.members[i];
    ASSERT_TRUE(is_prefix(member.delivered, logs[i].messages)) << "not in its own log: " << i;
    ASSERT_TRUE(is_prefix(member.delivered, longest->messages)) << "lost, of member " << i;
    if (logs[i].view() == longest->view()) {
      ASSERT_TRUE(is_prefix(logs[i].messages, longest->messages)) << "another order: " << i;
    }
    delivered += member.delivered.size();
    views += member.views.size();
  }
  const std::set<std::string> different(longest->messages.begin(), longest->messages.end());
  ASSERT_EQ(different.size(), longest->messages.size()) << "twice";
}

TEST(DurableGroupFromSeeds, LosesNothingThatWasDeliveredWhenAllCrash) {
  std::uint64_t delivered = 0;
  std::uint64_t views = 0;
  const std::uint64_t kSeeds = test::rounds(400);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    ASSERT_NO_FATAL_FAILURE(crash_all(seed, delivered, views));
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(delivered, 50 * kSeeds);
  EXPECT_GT(views, 4 * kSeeds);
}

/// By quorum, some members are not there at first, or come with an empty disk. Returns how many.
std::uint64_t let_some_be_absent(DurableGroup& group, const std::vector<FoundLog>& logs) {
  std::uint64_t absent = 0;
  std::vector<Rank> here;
  for (Rank rank = 0; rank < logs.size(); ++rank)
    if (group.draw(4) != 0) here.push_back(rank);
  // Members that have nothing begin a new history: so they never come alone.
  if (std::ranges::all_of(here, [&](Rank rank) { return logs[rank].state.views.empty(); }))
    return 0;
  for (Rank rank = 0; rank < logs.size(); ++rank) {
    if (std::ranges::find(here, rank) != here.end()) continue;
    group.crash(rank);
    ++absent;
  }
  return absent;
}

/// The disk of one member is replaced by an empty one, where the logs of all others are as long.
bool lose_a_disk(DurableGroup::Disks& disks, const std::vector<FoundLog>& logs,
                 std::uint64_t seed) {
  if (seed % 5 != 0 || disks.size() < 3) return false;
  for (const FoundLog& log : logs)
    if (log.messages.size() < 2) return false;
  disks[seed / 5 % disks.size()] = std::move(DurableGroup::make_disks(1, seed).front());
  return true;
}

/// Run after run on the same disks, with faults, crashes of all, also while logs are made equal:
/// what anybody was ever given stays as it was.
void restart_again_and_again(std::uint64_t seed, std::uint64_t& given, std::uint64_t& unequal,
                             std::uint64_t& loaded) {
  const auto members = static_cast<std::uint32_t>(2 + seed % 4);
  auto disks = DurableGroup::make_disks(members, seed);
  std::vector<std::string> known;
  for (std::uint64_t run = 0; run < 6; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", run " + std::to_string(run));
    std::set<std::uint64_t> ends;
    std::vector<FoundLog> logs;
    for (auto& disk : disks) {
      logs.push_back(test::read_log(*disk));
      ends.insert(logs.back().state.end.number);
    }
    ASSERT_NO_FATAL_FAILURE(test::expect_no_log_to_pass_for_lost(logs));
    unequal += ends.size() > 1 ? 1 : 0;
    DurableGroup group(disks, seed * 10 + run, std::to_string(run), sim::profile("ib100"), {},
                       trim_of(seed));
    group.send(10 + group.draw(40));
    if (group.draw(3) == 0) let_one_fail(group, disks);
    group.world.run_for(1 + group.draw(3'000'000));
    std::vector<std::string> longest = known;
    for (const DurableMember& member : group.members) {
      if (!member.delivered.empty()) {
        ASSERT_TRUE(is_prefix(known, member.replayed)) << "something is lost";
      }
      std::vector<std::string> all = member.replayed;
      all.insert(all.end(), member.delivered.begin(), member.delivered.end());
      ASSERT_TRUE(is_prefix(all, longest) || is_prefix(longest, all)) << "another order";
      if (all.size() > longest.size()) longest = std::move(all);
      given += member.delivered.size();
      loaded += member.loaded;
    }
    known = std::move(longest);
    const std::set<std::string> different(known.begin(), known.end());
    ASSERT_EQ(different.size(), known.size()) << "twice";
    for (auto& disk : disks) disk->crash();
  }
}

/// The same by quorum: some members are not there, or come with an empty disk.
void restart_with_a_quorum(std::uint64_t seed, std::uint64_t& given, std::uint64_t& without) {
  const auto members = static_cast<std::uint32_t>(2 + seed % 4);
  auto disks = DurableGroup::make_disks(members, seed);
  std::vector<std::string> known;
  for (std::uint64_t run = 0; run < 8; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", run " + std::to_string(run));
    std::vector<FoundLog> logs;
    for (auto& disk : disks) logs.push_back(test::read_log(*disk));
    const bool lost = lose_a_disk(disks, logs, seed + run);
    DurableGroup group(disks, seed * 10 + run, std::to_string(run), sim::profile("ib100"), {},
                       trim_of(seed), true);
    const std::uint64_t absent = run > 0 && !lost ? let_some_be_absent(group, logs) : 0;
    group.send(10 + group.draw(40));
    group.world.run_for(1 + group.draw(2'000'000));
    // Some crash one after the other, or at once.
    for (std::uint64_t crashes = group.draw(members); crashes > 0; --crashes) {
      group.crash(static_cast<Rank>(group.draw(members)));
      group.world.run_for(1 + group.draw(2) * group.draw(1'500'000));
    }
    group.world.run_for(1 + group.draw(4'000'000));
    std::vector<std::string> longest = known;
    bool works = false;
    for (const DurableMember& member : group.members) {
      if (!member.delivered.empty()) {
        ASSERT_TRUE(is_prefix(known, member.replayed)) << "something is lost";
        works = true;
      }
      std::vector<std::string> all = member.replayed;
      all.insert(all.end(), member.delivered.begin(), member.delivered.end());
      ASSERT_TRUE(is_prefix(all, longest) || is_prefix(longest, all)) << "another order";
      if (all.size() > longest.size()) longest = std::move(all);
      given += member.delivered.size();
    }
    without += works && (absent > 0 || lost) ? 1 : 0;
    known = std::move(longest);
    const std::set<std::string> different(known.begin(), known.end());
    ASSERT_EQ(different.size(), known.size()) << "twice";
    for (auto& disk : disks) disk->crash();
  }
}

TEST(DurableGroupFromSeeds, GoesOnWithAQuorumOfItsLastView) {
  std::uint64_t given = 0;
  std::uint64_t without = 0;
  const std::uint64_t kSeeds = test::rounds(300);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    ASSERT_NO_FATAL_FAILURE(restart_with_a_quorum(seed, given, without));
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(given, 130 * kSeeds);
  EXPECT_GT(without, kSeeds);
}

TEST(DurableGroupFromSeeds, KeepsWhatWasEverDeliveredOverManyRestarts) {
  std::uint64_t given = 0;
  std::uint64_t unequal = 0;
  std::uint64_t loaded = 0;
  const std::uint64_t kSeeds = test::rounds(150);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    ASSERT_NO_FATAL_FAILURE(restart_again_and_again(seed, given, unequal, loaded));
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(given, 130 * kSeeds);
  EXPECT_GT(unequal, kSeeds / 2);
  EXPECT_GT(loaded, kSeeds);
}

}  // namespace
}  // namespace dunlin
