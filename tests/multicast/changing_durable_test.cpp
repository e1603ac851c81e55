#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/durable_group.hpp"
#include "support/errors.hpp"

/// Durable subgroups that come and go at run time, on simulated networks and disks.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A member's history is what was replayed to it, and what it was delivered since.
struct LoggingMember {
  std::unique_ptr<Group> group;
  std::unique_ptr<Multicast> cast;
  std::vector<std::string> history;
  std::size_t replayed = 0;
  std::uint32_t sent = 0;
  std::uint32_t to_send = 0;
  std::string error;
};

/// One run of a group on its disks. Nobody is in the subgroup before it joins.
class LoggingGroup {
 public:
  LoggingGroup(DurableGroup::Disks& disks, std::string run)
      : world(sim::profile("ib100"), static_cast<std::uint32_t>(disks.size()), 1),
        members(disks.size()),
        disks_(disks),
        run_(std::move(run)) {
    for (Rank rank = 0; rank < members.size(); ++rank) {
      LoggingMember& member = members[rank];
      member.group = std::make_unique<Group>(world.fabric(rank));
      world.attach(rank, [this, rank] { return step(rank); });
    }
  }
  ~LoggingGroup() {
    for (LoggingMember& member : members) member.cast.reset();
  }
  LoggingGroup(const LoggingGroup&) = delete;
  LoggingGroup& operator=(const LoggingGroup&) = delete;

  void join(Rank rank, SubgroupJoin join = {}) {
    LoggingMember& member = members[rank];
    member.history.clear();
    member.replayed = 0;
    member.cast = Multicast::join(*member.group, "orders",
                                  DurableGroup::options(disks_[rank].get()), std::move(join));
    member.cast->on_replay([&member](const multicast::Logged& logged) {
      member.history.push_back(text_of(logged.message));
      ++member.replayed;
    });
    member.cast->on_delivery([&member](std::span<const multicast::Delivery> batch) {
      for (const auto& delivery : batch) member.history.push_back(text_of(delivery.message));
    });
    world.on(rank, [] {});  // polls
  }
  void send(Rank rank, std::uint32_t messages) {
    members[rank].to_send += messages;
    world.on(rank, [] {});
  }
  bool have(const std::vector<Rank>& ranks, std::size_t messages) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(
              ranks, [&](Rank rank) { return members[rank].history.size() >= messages; });
        },
        1'000'000'000);
  }
  [[nodiscard]] SubgroupJoin with_founders() const {
    return {.founders = members[0].group->view().members};
  }

  sim::World world;
  std::vector<LoggingMember> members;

 private:
  std::size_t step(Rank rank) {
    LoggingMember& member = members[rank];
    std::size_t done = 0;
    for (; member.cast && member.to_send > 0; --member.to_send, ++member.sent, ++done) {
      const std::string text =
          run_ + ":" + std::to_string(rank) + ":" + std::to_string(member.sent);
      if (member.cast->send(std::as_bytes(std::span(text))) != multicast::SendResult::sent) break;
    }
    try {
      done += member.group->poll();
    } catch (const Error& error) {
      if (member.error.empty()) ++done;
      member.error = error.what();
    }
    return done;
  }

  DurableGroup::Disks& disks_;
  std::string run_;
};

TEST(ChangingDurableSubgroups, KeepOneHistoryOverChangesAndARestart) {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
  std::vector<std::string> history;
  {
    LoggingGroup group(disks, "a");
    for (Rank rank = 0; rank < 3; ++rank) group.join(rank, group.with_founders());
    for (Rank rank = 0; rank < 3; ++rank) group.send(rank, 10);
    ASSERT_TRUE(group.have({0, 1, 2}, 30)) << group.members[0].error;
    group.world.on(2, [&] { group.members[2].cast->leave(); });
    ASSERT_TRUE(
        group.world.run_until([&] { return group.members[2].cast->left(); }, 1'000'000'000));
    EXPECT_EQ(group.members[2].cast->why_left(), "");
    group.send(1, 20);
    ASSERT_TRUE(group.have({0, 1}, 50));
    group.members[2].cast.reset();
    group.join(2);
    ASSERT_TRUE(group.have({2}, 50)) << group.members[2].cast->why_left();
    EXPECT_EQ(group.members[2].replayed, 50U) << "what it had, and what others logged since";
    group.send(2, 10);
    ASSERT_TRUE(group.have({0, 1, 2}, 60));
    history = group.members[0].history;
    for (const LoggingMember& member : group.members) {
      EXPECT_EQ(member.history, history);
      EXPECT_EQ(member.error, "");
    }
    for (const auto& disk : disks) disk->crash();
    for (const auto& disk : disks) EXPECT_EQ(test::read_log(*disk).messages, history);
  }
  LoggingGroup group(disks, "b");
  for (Rank rank = 0; rank < 3; ++rank) group.join(rank, group.with_founders());
  ASSERT_TRUE(group.have({0, 1, 2}, 60)) << group.members[0].error;
  group.send(0, 1);
  ASSERT_TRUE(group.have({0, 1, 2}, 61));
  history.emplace_back("b:0:0");
  for (const LoggingMember& member : group.members) {
    EXPECT_EQ(member.history, history);
    EXPECT_EQ(member.replayed, 60U);
  }
}

TEST(ChangingDurableSubgroups, GiveALateMemberTheLogAndOutliveTheirFirst) {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 2);
  LoggingGroup group(disks, "a");
  group.join(0);
  group.send(0, 25);
  ASSERT_TRUE(group.have({0}, 25)) << group.members[0].error;
  group.join(1);
  group.join(2);
  ASSERT_TRUE(group.have({1, 2}, 25)) << group.members[1].error << group.members[2].error;
  EXPECT_EQ(group.members[1].replayed, 25U);
  group.send(2, 1);  // once it is delivered, all have the log
  ASSERT_TRUE(group.have({0, 1, 2}, 26));
  group.world.crash(0);
  group.send(1, 4);
  ASSERT_TRUE(group.have({1, 2}, 30)) << group.members[1].error << group.members[2].error;
  EXPECT_EQ(group.members[1].history, group.members[2].history);
  EXPECT_EQ(group.members[1].cast->subgroup().members, (std::vector<Rank>{1, 2}));
}

/// GRP-D7: its log may hold what those that have gone had delivered.
TEST(ChangingDurableSubgroups, AreLeftByAMemberThatNobodyCanGiveTheState) {
  DurableGroup::Disks disks = DurableGroup::make_disks(2, 3);
  LoggingGroup group(disks, "a");
  bool loaded = false;
  const auto with_state = [&](Rank rank) {
    group.members[rank].cast->on_state([] { return std::vector<std::byte>(1); },
                                       [&](std::span<const std::byte>) { loaded = true; });
  };
  group.join(0);
  with_state(0);
  group.send(0, 5);
  ASSERT_TRUE(group.have({0}, 5));
  group.join(1);
  with_state(1);
  ASSERT_TRUE(group.world.run_until(
      [&] { return group.members[1].cast->subgroup().members.size() == 2; }, 1'000'000'000));
  group.world.on(0, [&] { group.members[0].cast.reset(); });
  ASSERT_TRUE(group.world.run_until([&] { return group.members[1].cast->left(); }, 1'000'000'000));
  EXPECT_TRUE(contains(group.members[1].cast->why_left(), "join it anew"));
  EXPECT_FALSE(loaded);
  group.members[1].cast.reset();
  group.join(1);
  group.send(1, 1);
  ASSERT_TRUE(group.have({1}, group.members[1].replayed + 1)) << group.members[1].error;
}

}  // namespace
}  // namespace dunlin
