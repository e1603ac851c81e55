#include <gtest/gtest.h>

#include "group/cluster_fixture.hpp"
#include "multicast/durable_group.hpp"
#include "multicast/log_scribe.hpp"
#include "support/errors.hpp"

/// How the members of a durable subgroup make their logs equal when a view begins.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;
using test::DurableMember;
using test::FoundLog;
using test::is_prefix;
using test::LogScribe;

/// A member has not begun the first view when it ends, and gets its record in the second; its disk
/// is slow, and everything crashes before that is stored.
TEST(LogAgreement, BeginsAViewOnceAllHaveStoredWhatCameBeforeIt) {
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
    ASSERT_NO_FATAL_FAILURE(test::expect_no_log_to_pass_for_lost(logs));
    still_empty += logs[2].state.views.empty() && !logs[0].state.views.empty() ? 1 : 0;
  }
  EXPECT_GT(still_empty, 0);
}

TEST(LogAgreement, BringsAnEmptyLogUpToTheOthers) {
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

/// Everything crashes at some moment while a member takes back what did not count: what it shares
/// with the others' log is on its disk all the time. Else it would not show that its view began.
TEST(LogAgreement, CutsOffOnlyWhatDiffers) {
  const std::string text(4'000, '.');  // all of it is more than the agreement's ring
  const auto share = [&](LogScribe& log) {
    log.view(1, {"node0", "node1"});
    for (int i = 0; i < 40; ++i) log.message(text);
  };
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  for (std::uint64_t at_ns = 0; at_ns < 1'500'000; at_ns += 10'000) {
    SCOPED_TRACE(std::to_string(at_ns) + " ns");
    auto disks = DurableGroup::make_disks(2, 1);
    test::write_log(*disks[0], [&](LogScribe& log) {
      share(log);
      log.message("two").message("three");
    });
    test::write_log(*disks[1], [&](LogScribe& log) {
      share(log);
      log.view(2, {"node1"});
    });
    DurableGroup group(disks, 1);
    group.world.run_for(at_ns);
    disks[0]->crash();
    const FoundLog log = test::read_log(*disks[0]);
    EXPECT_GE(log.messages.size(), 40U);
    before += log.messages.size() == 42 ? 1 : 0;
    after += log.view() == 3 ? 1 : 0;
  }
  EXPECT_GT(before, 0U);
  EXPECT_GT(after, 0U);
}

/// Members that were started apart meet: both logs have what was delivered, and neither is cut.
void meet(const test::Writing& first, const test::Writing& second,
          const std::string& others_error) {
  auto disks = DurableGroup::make_disks(2, 1);
  test::write_log(*disks[0], first);
  test::write_log(*disks[1], second);
  const FoundLog before = test::read_log(*disks[0]);
  DurableGroup group(disks, 1);
  const DurableMember& member = group.members[0];
  ASSERT_TRUE(group.world.run_until([&] { return member.group->ended(); }, 100'000'000));
  EXPECT_TRUE(contains(member.error, "log 'sim/orders': record ")) << member.error;
  EXPECT_TRUE(contains(member.error, " and what follows counted, and the log of 'node1', with"))
      << member.error;
  group.send(1);
  const DurableMember& other = group.members[1];
  EXPECT_TRUE(group.world.run_until(
      [&] { return !other.error.empty() || other.delivered.size() == 1; }, 100'000'000));
  EXPECT_TRUE(contains(other.error, others_error) && other.error.empty() == others_error.empty())
      << other.error;
  disks[0]->crash();
  EXPECT_EQ(test::read_log(*disks[0]).state.end, before.state.end);
}

TEST(LogAgreement, CutsOffNoViewThatBeganInAnotherHistory) {
  meet([](LogScribe& log) { log.view(1, {"node0"}).message("one"); },
       [](LogScribe& log) { log.view(1, {"node1"}).message("two").view(2, {"node1"}); }, "");
}

TEST(LogAgreement, CutsOffNoMessageOfAnotherHistory) {
  meet(
      [](LogScribe& log) {
        log.view(1, {"node0", "node1"}).message("one").message("two");
      },
      [](LogScribe& log) {
        log.view(1, {"node0", "node1"}).message("one").message("three").message("four");
      },
      "the last view in the logs that are here, 1, also had 'node0'");
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
struct DurableFixture {
  explicit DurableFixture(std::uint64_t seed)
      : disks(DurableGroup::make_disks(4, seed)), world(sim::profile("ib100"), 3, seed) {
    for (Rank node = 0; node < 3; ++node) make(node);
  }
  void found_and_send(std::uint32_t messages_each) {
    for (auto& cluster_node : cluster_nodes) cluster_node->found();
    for (auto& cluster_node : cluster_nodes) cluster_node->send(messages_each);
  }
  void let_one_come() {
    make(world.add_node());
    cluster_nodes.back()->come();
  }
  bool run_until_all_have(std::size_t messages) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(cluster_nodes, [&](const auto& cluster_node) {
            return cluster_node->history.size() == messages;
          });
        },
        1'000'000'000);
  }
  /// Returns how many views are in them.
  std::uint64_t expect_equal_logs() {
    std::uint64_t views = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(cluster_nodes[i]->history, cluster_nodes[0]->history);
      disks[i]->crash();
      const FoundLog log = test::read_log(*disks[i], "sim/log");
      EXPECT_EQ(log.messages, cluster_nodes[0]->history);
      EXPECT_TRUE(i == 0 || log.view() == views) << i;
      views = log.view();
    }
    return views;
  }

  DurableGroup::Disks disks;
  sim::World world;
  std::vector<std::unique_ptr<test::ClusterNode>> cluster_nodes;

 private:
  void make(Rank node) {
    cluster_nodes.push_back(
        std::make_unique<test::ClusterNode>(world, node, DurableGroup::options(disks[node].get())));
  }
};

/// Whoever comes in gets the log, and a state beside it.
TEST(LogAgreement, LetsMembersComeIn) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DurableFixture fixture(seed);
    fixture.found_and_send(30);
    fixture.world.run_for(seed * 40'000);
    fixture.let_one_come();
    ASSERT_TRUE(fixture.world.run_until([&] { return fixture.cluster_nodes[3]->group != nullptr; },
                                        100'000'000))
        << fixture.cluster_nodes[3]->error;
    for (auto& cluster_node : fixture.cluster_nodes) cluster_node->send(5);
    ASSERT_TRUE(fixture.run_until_all_have(110));
    EXPECT_EQ(fixture.expect_equal_logs(), 2);
    EXPECT_EQ(fixture.cluster_nodes[3]->loads, 1);
    EXPECT_EQ(fixture.cluster_nodes[3]->replayed, 0) << "the state has it already";
  }
}

TEST(LogAgreement, LetsAMemberComeInBeforeItsFoundersHaveBegunTheirLogs) {
  std::uint32_t before = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DurableFixture fixture(seed);
    fixture.world.slow_link(1, 2, static_cast<double>(seed));  // not on the way of a join
    fixture.found_and_send(5);
    fixture.let_one_come();
    fixture.cluster_nodes[3]->send(5);
    ASSERT_TRUE(fixture.run_until_all_have(20))
        << fixture.cluster_nodes[0]->error << fixture.cluster_nodes[3]->error;
    before += fixture.expect_equal_logs() == 1 ? 1 : 0;
  }
  EXPECT_GT(before, 0U);
}

/// Who comes into a durable subgroup when all who had its log are gone has nothing to begin with.
TEST(LogAgreement, DoesNotBeginAnewWhenTheLogIsGone) {
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
    return GroupOptions{.subgroups = specs, .rendezvous = world.rendezvous(node, "sim")};
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
  world.on(1, [&] {
    EXPECT_EQ(programs[1].cast->send(std::as_bytes(std::span("one", 3))),
              multicast::SendResult::sent);
  });
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
TEST(LogAgreement, KnowsTheViewsOfALogThatItHasJustOpened) {
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

}  // namespace
}  // namespace dunlin
