#include <map>
#include <set>

#include <gtest/gtest.h>

#include "group/joining_groups.hpp"
#include "multicast/durable_group.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/rounds.hpp"

/// The durable mode, on simulated networks and disks.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;
using test::DurableMember;
using test::FoundLog;
using test::is_prefix;
using test::what_is_thrown_by;

/// Of three members.
struct Durable : testing::Test {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
  DurableGroup group{disks, 1};
};

TEST_F(Durable, DeliversEverywhereInOneOrderAndLogsIt) {
  group.send(40);
  ASSERT_TRUE(group.run_until_all_delivered(120));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(group.members[i].delivered, group.members[0].delivered);
    disks[i]->crash();  // at the very moment of the last delivery
    EXPECT_EQ(test::read_log(*disks[i]).messages, group.members[0].delivered);
  }
}

TEST_F(Durable, CommitsTogetherWhatComesWhileTheDiskIsBusy) {
  group.send(200);
  ASSERT_TRUE(group.run_until_all_delivered(600));
  for (const DurableMember& member : group.members)
    EXPECT_LT(member.cast->counters().log_commits, 100);
}

TEST_F(Durable, IsQuietWhenNobodySends) {
  group.send(5);
  ASSERT_TRUE(group.run_until_all_delivered(15));
  group.world.run_for(10'000'000);
  const auto writes = [&] {
    std::uint64_t sum = 0;
    for (const DurableMember& member : group.members)
      sum += member.cast->counters().pushes + member.cast->counters().log_commits;
    return sum;
  };
  const std::uint64_t before = writes();
  group.world.run_for(50'000'000);
  EXPECT_EQ(writes(), before);
}

TEST_F(Durable, WaitsForTheSlowestDisk) {
  disks[2]->latency(3'000'000, 3'000'000);
  group.send(1);
  group.world.run_for(2'900'000);
  for (const DurableMember& member : group.members) EXPECT_TRUE(member.delivered.empty());
  ASSERT_TRUE(group.run_until_all_delivered(3));
}

TEST_F(Durable, GoesOnWithoutAMemberWhoseDiskIsFull) {
  disks[1]->capacity(9'000);
  group.send(60);
  ASSERT_TRUE(group.world.run_until(
      [&] { return group.members[0].views.size() == 2 && !group.members[1].error.empty(); },
      1'000'000'000));
  EXPECT_TRUE(contains(group.members[1].error, "this member leaves the group: log 'sim/orders': "));
  EXPECT_TRUE(contains(group.members[1].error, "'log/0000000000000001.log': writing "));
  EXPECT_TRUE(contains(group.members[1].error, "No space left on device"));
  ASSERT_TRUE(group.run_until_all_delivered(120));
  EXPECT_EQ(group.members[0].delivered, group.members[2].delivered);
  EXPECT_TRUE(is_prefix(group.members[1].delivered, group.members[0].delivered));
  disks[1]->crash();
  const FoundLog full = test::read_log(*disks[1]);
  EXPECT_TRUE(is_prefix(group.members[1].delivered, full.messages));
}

TEST_F(Durable, StopsAtAFailedSync) {
  group.send(10);
  ASSERT_TRUE(group.run_until_all_delivered(30));
  disks[0]->fail_next_sync();
  group.send(10);
  ASSERT_TRUE(
      group.world.run_until([&] { return group.members[1].views.size() == 2; }, 1'000'000'000));
  EXPECT_TRUE(contains(group.members[0].error, "fdatasync"));
  ASSERT_TRUE(group.run_until_all_delivered(50));
}

TEST(DurableGroup, NoticesAFailedLogThoughNothingElseHappens) {
  auto disks = DurableGroup::make_disks(1, 1);
  DurableGroup group(disks, 1);
  group.send(1);
  ASSERT_TRUE(group.run_until_all_delivered(1));
  disks[0]->fail_next_sync();
  group.send(1);
  EXPECT_TRUE(group.world.run_until([&] { return !group.members[0].error.empty(); }, 100'000'000));
}

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

/// After everybody has crashed. Who is in two views of a log has a log itself (L6).
void expect_no_log_to_pass_for_lost(const std::vector<FoundLog>& logs) {
  for (const FoundLog& log : logs) {
    std::map<std::string, std::uint32_t> views;
    for (const multicast::LoggedView& view : log.state.views)
      for (const std::string& member : view.members) ++views[member];
    for (std::size_t i = 0; i < logs.size(); ++i)
      ASSERT_TRUE(!logs[i].state.views.empty() || views["node" + std::to_string(i)] < 2) << i;
  }
}

/// After everybody has crashed: the longest log of the last view has what anybody has delivered.
void crash_all(std::uint64_t seed, std::uint64_t& delivered, std::uint64_t& views) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto members = static_cast<std::uint32_t>(2 + seed % 4);
  auto disks = DurableGroup::make_disks(members, seed);
  DurableGroup group(disks, seed);
  group.send(20 + group.draw(60));
  for (std::uint64_t faults = group.draw(3); faults > 0; --faults) let_one_fail(group, disks);
  group.world.run_for(1 + group.draw(3'000'000));
  std::vector<FoundLog> logs;
  const FoundLog* longest = nullptr;
  for (auto& disk : disks) {
    disk->crash();
    logs.push_back(test::read_log(*disk));
  }
  ASSERT_NO_FATAL_FAILURE(expect_no_log_to_pass_for_lost(logs));
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

TEST(DurableGroup, LosesNothingThatWasDeliveredWhenAllCrash) {
  std::uint64_t delivered = 0;
  std::uint64_t views = 0;
  constexpr std::uint64_t kSeeds = test::rounds(400);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ASSERT_NO_FATAL_FAILURE(crash_all(seed, delivered, views));
  }
  EXPECT_GT(delivered, 50 * kSeeds);
  EXPECT_GT(views, 4 * kSeeds);
}

/// Run after run on the same disks, with faults, crashes of all, also while logs are made equal:
/// what anybody was ever given stays as it was.
void restart_again_and_again(std::uint64_t seed, std::uint64_t& given, std::uint64_t& unequal) {
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
    ASSERT_NO_FATAL_FAILURE(expect_no_log_to_pass_for_lost(logs));
    unequal += ends.size() > 1 ? 1 : 0;
    DurableGroup group(disks, seed * 10 + run, std::to_string(run));
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
    }
    known = std::move(longest);
    const std::set<std::string> different(known.begin(), known.end());
    ASSERT_EQ(different.size(), known.size()) << "twice";
    for (auto& disk : disks) disk->crash();
  }
}

TEST(DurableGroup, KeepsWhatWasEverDeliveredOverManyRestarts) {
  std::uint64_t given = 0;
  std::uint64_t unequal = 0;
  constexpr std::uint64_t kSeeds = test::rounds(150);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ASSERT_NO_FATAL_FAILURE(restart_again_and_again(seed, given, unequal));
  }
  EXPECT_GT(given, 130 * kSeeds);
  EXPECT_GT(unequal, kSeeds / 2);
}

/// A member has not begun the first view when it ends, and gets its record in the second; its disk
/// is slow, and everything crashes before that is stored.
TEST(DurableGroup, BeginsAViewOnceAllHaveStoredWhatCameBeforeIt) {
  std::uint32_t still_empty = 0;
  for (std::uint64_t at_ns = 500; at_ns < 100'000; at_ns += 500) {
    SCOPED_TRACE(std::to_string(at_ns) + " ns");
    auto disks = DurableGroup::make_disks(3, 1);
    disks[0]->latency(1'000, 1'000);
    disks[2]->latency(20'000'000, 20'000'000);
    DurableGroup group(disks, 1);
    group.world.run_for(at_ns);
    group.world.pause(2, 50'000);
    group.world.run_for(20'000);
    group.world.on(1, [&] { group.members[1].group->leave(); });
    ASSERT_TRUE(
        group.world.run_until([&] { return group.members[2].views.size() == 2; }, 100'000'000));
    group.world.run_for(1'000'000);
    std::vector<FoundLog> logs;
    for (auto& disk : disks) {
      disk->crash();
      logs.push_back(test::read_log(*disk));
    }
    ASSERT_NO_FATAL_FAILURE(expect_no_log_to_pass_for_lost(logs));
    still_empty += logs[2].state.views.empty() && !logs[0].state.views.empty() ? 1 : 0;
  }
  EXPECT_GT(still_empty, 0);
}

TEST(DurableGroup, ReplaysItsLogAndGoesOnBehindIt) {
  auto disks = DurableGroup::make_disks(3, 1);
  std::vector<std::string> all;
  for (const std::string run : {"a", "b", "c"}) {
    DurableGroup group(disks, 1, run);
    group.send(20);
    ASSERT_TRUE(group.run_until_all_delivered(60));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(group.members[i].replayed, all);
      EXPECT_EQ(group.members[i].delivered, group.members[0].delivered);
    }
    all.insert(all.end(), group.members[0].delivered.begin(), group.members[0].delivered.end());
    for (auto& disk : disks) disk->crash();
  }
  EXPECT_EQ(test::read_log(*disks[0]).view(), 3);
}

TEST(DurableGroup, BringsAnEmptyLogUpToTheOthers) {
  auto disks = DurableGroup::make_disks(3, 1);
  std::vector<std::string> all;
  {
    DurableGroup group(disks, 1);
    group.send(30);
    ASSERT_TRUE(group.run_until_all_delivered(90));
    all = group.members[0].delivered;
  }
  for (auto& disk : disks) disk->crash();
  disks[1] = std::make_unique<log::SimulatedDisk>(7);
  {
    DurableGroup group(disks, 1, "b");
    EXPECT_TRUE(
        group.world.run_until([&] { return !group.members[1].error.empty(); }, 100'000'000));
    EXPECT_TRUE(contains(group.members[1].error, "'node1' (here with an empty log)"));
  }
  for (auto& disk : disks) disk->crash();
  DurableGroup group(disks, 1, "b", sim::profile("ib100"), {"node1"});
  group.send(1);
  ASSERT_TRUE(group.run_until_all_delivered(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(group.members[i].error, "");
    EXPECT_EQ(group.members[i].replayed, all);
    disks[i]->crash();
    EXPECT_EQ(test::read_log(*disks[i]).messages.size(), 93);
    EXPECT_EQ(test::read_log(*disks[i]).state.end, test::read_log(*disks[0]).state.end);
  }
}

/// Three members start again on equal logs. That of one can be read no more as soon as it has been
/// opened: it is gone, or a record of it is damaged.
struct UnreadableLog : testing::TestWithParam<bool> {
  UnreadableLog() {
    {
      DurableGroup first(disks, 1);
      first.send(20);
      EXPECT_TRUE(first.run_until_all_delivered(60));
      before = first.members[0].delivered;
    }
    for (auto& disk : disks) disk->crash();
  }
  void spoil_log_of(Rank rank) {
    const std::string file = "0000000000000001.log";
    if (GetParam()) return disks[rank]->remove("log", file);
    std::vector<std::byte> bytes = disks[rank]->content("log", file);
    bytes[bytes.size() / 2] ^= std::byte{1};
    disks[rank]->replace("log", file, std::move(bytes));
  }
  static std::string complaint() {
    return "this member leaves the group: log 'sim/orders': 'log/0000000000000001.log'" +
           std::string(GetParam() ? ": opening it failed: No such file" : " at offset ");
  }

  DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
  std::vector<std::string> before;
};
INSTANTIATE_TEST_SUITE_P(, UnreadableLog, testing::Bool(), [](const auto& spoilt) {
  return std::string(spoilt.param ? "gone" : "damaged");
});

TEST_P(UnreadableLog, IsLeftByWhoReplaysIt) {
  DurableGroup group(disks, 2, "b");
  spoil_log_of(1);
  const DurableMember& victim = group.members[1];
  ASSERT_TRUE(group.world.run_until(
      [&] { return victim.group->ended() && group.members[2].views.size() == 2; }, 100'000'000));
  EXPECT_TRUE(contains(victim.error, complaint())) << victim.error;
  EXPECT_TRUE(is_prefix(victim.replayed, before));
  group.send(5);
  ASSERT_TRUE(group.run_until_all_delivered(10));
  for (const Rank rank : {0U, 2U}) {
    EXPECT_EQ(group.members[rank].error, "");
    EXPECT_EQ(group.members[rank].replayed, before);
    EXPECT_EQ(group.members[rank].delivered, group.members[0].delivered);
  }
}

/// The first of equal logs is the one that all take.
TEST_P(UnreadableLog, IsLeftByWhoIsToSendItToTheOthers) {
  DurableGroup group(disks, 2, "b");
  spoil_log_of(0);
  const DurableMember& victim = group.members[0];
  ASSERT_TRUE(group.world.run_until([&] { return victim.group->ended(); }, 100'000'000));
  EXPECT_TRUE(contains(victim.error, complaint())) << victim.error;
  EXPECT_TRUE(victim.replayed.empty());
}

/// Three members, and then a fourth; each has the history of all messages as its state.
struct Town {
  explicit Town(std::uint64_t seed)
      : disks(DurableGroup::make_disks(4, seed)), world(sim::profile("ib100"), 3, seed) {
    for (Rank node = 0; node < 3; ++node) make(node);
  }
  void found_and_send(std::uint32_t messages_each) {
    for (auto& citizen : citizens) citizen->found();
    for (auto& citizen : citizens) citizen->send(messages_each);
  }
  void let_one_come() {
    make(world.add_node());
    citizens.back()->come();
  }
  bool run_until_all_have(std::size_t messages) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(
              citizens, [&](const auto& citizen) { return citizen->history.size() == messages; });
        },
        1'000'000'000);
  }
  /// Returns how many views are in them.
  std::uint64_t expect_equal_logs() {
    std::uint64_t views = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(citizens[i]->history, citizens[0]->history);
      disks[i]->crash();
      const FoundLog log = test::read_log(*disks[i], "town/log");
      EXPECT_EQ(log.messages, citizens[0]->history);
      EXPECT_TRUE(i == 0 || log.view() == views) << i;
      views = log.view();
    }
    return views;
  }

  DurableGroup::Disks disks;
  sim::World world;
  std::vector<std::unique_ptr<test::Citizen>> citizens;

 private:
  void make(Rank node) {
    citizens.push_back(
        std::make_unique<test::Citizen>(world, node, DurableGroup::options(disks[node].get())));
  }
};

/// Whoever comes in gets the log, and a state beside it.
TEST(DurableGroup, LetsMembersComeIn) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Town town(seed);
    town.found_and_send(30);
    town.world.run_for(seed * 40'000);
    town.let_one_come();
    ASSERT_TRUE(
        town.world.run_until([&] { return town.citizens[3]->group != nullptr; }, 100'000'000))
        << town.citizens[3]->error;
    for (auto& citizen : town.citizens) citizen->send(5);
    ASSERT_TRUE(town.run_until_all_have(110));
    EXPECT_EQ(town.expect_equal_logs(), 2);
    EXPECT_EQ(town.citizens[3]->loads, 1);
  }
}

TEST(DurableGroup, LetsAMemberComeInBeforeItsFoundersHaveBegunTheirLogs) {
  std::uint32_t before = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Town town(seed);
    town.world.slow_link(1, 0, static_cast<double>(seed));
    town.found_and_send(5);
    town.let_one_come();
    town.citizens[3]->send(5);
    ASSERT_TRUE(town.run_until_all_have(20)) << town.citizens[0]->error << town.citizens[3]->error;
    before += town.expect_equal_logs() == 1 ? 1 : 0;
  }
  EXPECT_GT(before, 0U);
}

/// Who comes into a durable subgroup when all who had its log are gone has nothing to begin with.
TEST(DurableGroup, DoesNotBeginAnewWhenTheLogIsGone) {
  auto disks = DurableGroup::make_disks(3, 1);
  sim::World world(sim::profile("ib100"), 2, 1);
  const std::vector<SubgroupSpec> specs = {{.name = "orders", .members = {"node1", "node2"}}};
  struct Program {
    std::unique_ptr<GroupEntry> entry = {};
    std::unique_ptr<Group> group = {};
    std::unique_ptr<Multicast> cast = {};
    std::uint64_t delivered = 0;
    std::string error = {};
  };
  std::vector<Program> programs(3);
  const auto settle = [&](Rank node, std::unique_ptr<Group> group) {
    Program& program = programs[node];
    program.group = std::move(group);
    program.cast = std::make_unique<Multicast>(*program.group, "orders",
                                               DurableGroup::options(disks[node].get()));
    program.cast->on_delivery([&program](std::span<const multicast::Delivery> batch) {
      program.delivered += batch.size();
    });
  };
  const auto poll = [&](Rank node) -> std::size_t {
    Program& program = programs[node];
    if (program.entry) {
      std::unique_ptr<Group> group = program.entry->poll();
      if (!group) return 0;
      settle(node, std::move(group));
      program.entry.reset();
    }
    if (!program.group) return 0;
    try {
      return program.group->poll();
    } catch (const Error& error) {
      return std::exchange(program.error, error.what()).empty() ? 1 : 0;
    }
  };
  const auto options = [&](Rank node) {
    return GroupOptions{.subgroups = specs, .meeting_place = world.meeting_place(node, "town")};
  };
  for (Rank node = 0; node < 2; ++node) {
    settle(node, std::make_unique<Group>(world.fabric(node), options(node)));
    world.attach(node, [&poll, node] { return poll(node); });
  }
  const auto come = [&](Rank node) {
    world.attach(node, [&poll, node] { return poll(node); });
    world.on(node, [&, node] {
      programs[node].entry = std::make_unique<GroupEntry>("node2", options(node), 1'000);
    });
  };
  world.run_for(1'000'000);
  world.on(1, [&] { EXPECT_TRUE(programs[1].cast->send(std::as_bytes(std::span("one", 3)))); });
  ASSERT_TRUE(world.run_until([&] { return programs[1].delivered == 1; }, 100'000'000));
  world.on(1, [&] { programs[1].group->leave(); });
  ASSERT_TRUE(world.run_until([&] { return programs[0].group->view().number == 2; }, 100'000'000));
  come(world.add_node());
  ASSERT_TRUE(world.run_until([&] { return programs[0].group->view().number == 4; }, 100'000'000))
      << "it comes, and leaves";
  EXPECT_TRUE(contains(programs[2].error,
                       "this member leaves the group: subgroup 'orders': the members that had its "
                       "log are gone, and those that are here have none"));
  EXPECT_EQ(programs[2].delivered, 0);
}

/// Which has been read anyway.
TEST(DurableGroup, KnowsTheViewsOfALogThatItHasJustOpened) {
  log::SimulatedDisk disk(1);
  const auto open = [&] {
    return std::make_unique<multicast::Journal>(
        std::shared_ptr<log::Disk>(std::shared_ptr<void>(), &disk), "log", "sim/orders");
  };
  auto journal = open();
  for (std::uint64_t view = 1; view <= 5; ++view) {
    journal->begin_view(view, {"a", "b" + std::to_string(view)});
    journal->append_again(2, std::vector<std::byte>(40));
  }
  journal->finish();
  const multicast::JournalState read = journal->read_state(false);
  ASSERT_EQ(read.views.size(), 5U);
  journal.reset();
  const multicast::JournalState known = open()->read_state(false);
  EXPECT_EQ(known.end, read.end);
  EXPECT_EQ(known.views, read.views);
  EXPECT_EQ(known.views.back().place.number, 9U);
}

TEST(DurableGroup, NeedsADirectoryForItsLog) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Multicast(group, "orders", {.mode = multicast::Mode::durable}); }),
      "subgroup 'orders': a durable one needs a directory for its log"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { Multicast(group, "orders", {.log_directory = "somewhere"}); }),
      "log_directory is for the mode durable only"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         Multicast(
                             group, "orders",
                             {.mode = multicast::Mode::durable, .log_directory = "/proc/no/such"});
                       }),
                       "/proc/no/such"));
}

/// On real files, with a thread that syncs them.
TEST(DurableGroup, KeepsItsLogInFiles) {
  const test::OwnDirectory directory;
  for (int run = 0; run < 2; ++run) {
    sim::World world(sim::profile("ideal"), 1, 1);
    Group group(world.fabric(0), {.subgroups = {{.name = "orders"}}});
    Multicast orders(group, "orders",
                     {.mode = multicast::Mode::durable, .log_directory = directory / "log"});
    std::uint64_t before = 0;
    orders.on_replay([&](const multicast::Logged& logged) {
      EXPECT_EQ(logged.message.size(), 3);
      EXPECT_EQ(logged.sender, "node0");
      EXPECT_EQ(logged.view, 1);
      ++before;
    });
    std::uint64_t delivered = 0;
    orders.on_delivery(
        [&](std::span<const multicast::Delivery> batch) { delivered += batch.size(); });
    std::uint64_t sent = 0;
    while (delivered < 100) {
      if (sent < 100 && orders.send(std::as_bytes(std::span("abc", 3)))) ++sent;
      world.on(0, [&] { group.poll(); });
      world.run_for(1'000);
    }
    EXPECT_EQ(before, run * 100);
  }
}

}  // namespace
}  // namespace dunlin
