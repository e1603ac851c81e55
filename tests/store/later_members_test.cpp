#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/segment.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

/// Members that join the group while its store is in use: they are clients of the founders' memory.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::kPatienceMs;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

using test::Growing;
using test::kFounders;
using test::kMost;
using test::roomy_store;
using Member = test::StoreMember;

/// Of real processes: a plan that meets the death of an earlier one uses its ranks up (GRP-N3).
constexpr std::uint32_t kMostThatJoin = 32;

TEST(StoreLaterMembers, ReadAndWriteWhatTheFoundersHold) {
  Growing members(2);
  for (const char* key : {"a", "b", "c", "d"}) members.put(0, key, "old");
  members.join(kFounders);
  members.join(kFounders + 1);
  for (const char* key : {"a", "b", "c", "d"}) {
    EXPECT_EQ(members.get(kFounders, key), "old");
    members.put(kFounders + 1, key, "new");
    EXPECT_EQ(members.get(1, key), "new");
    EXPECT_EQ(members.get(kFounders, key), "new");
  }
  members.put(kFounders, "e", "inserted");
  EXPECT_EQ(members.get(2, "e"), "inserted");
}

TEST(StoreLaterMembers, MayDieAtAnyMomentOfAChange) {
  std::uint32_t completed = 0, undone = 0;
  for (std::uint64_t moment = 0; moment < 240'000; moment += 12'000) {
    Growing members(1, Growing::network());
    const std::string before(200, 'b'), after(200, 'a');
    members.put(0, "key", before);
    members.join(kFounders);
    EXPECT_EQ(members.get(kFounders, "key"), before);
    {
      auto op = members.at(kFounders).put("key", after);
      members.world.run_for(moment);
      members.world.crash(kFounders);
    }
    const std::string seen = members.get(1, "key");
    EXPECT_TRUE(seen == before || seen == after) << "STO-4: " << moment;
    ++(seen == after ? completed : undone);
    members.put(2, "key", "further");  // its lock is free
    EXPECT_EQ(members.get(0, "key"), "further");
  }
  EXPECT_GT(completed, 0U);
  EXPECT_GT(undone, 0U);
}

TEST(StoreLaterMembers, MayDieAtAnyMomentOfATransaction) {
  std::uint32_t completed = 0, undone = 0;
  for (std::uint64_t moment = 0; moment < 200'000; moment += 4'000) {
    Growing members;
    const std::vector<std::string> keys{"a", "b", "c", "d"};  // at several homes
    for (const std::string& key : keys) members.put(0, key, "before");
    members.join(kFounders);
    for (const std::string& key : keys) EXPECT_EQ(members.get(kFounders, key), "before");
    {
      StoreTransaction transaction(members.at(kFounders));
      for (const std::string& key : keys) transaction.put(key, "after");
      transaction.commit();
      members.world.run_for(moment);
      members.world.crash(kFounders);
    }
    const std::vector<std::string> left = members.get_at_once(1, keys);
    const std::string& seen = left[0];
    EXPECT_TRUE(seen == "before" || seen == "after") << "STO-8: " << moment;
    for (const std::string& value : left) EXPECT_EQ(value, seen) << "STO-8: " << moment;
    ++(seen == "after" ? completed : undone);
  }
  EXPECT_GT(completed, 0U);
  EXPECT_GT(undone, 0U);
}

TEST(StoreLaterMembers, HearThatAFounderIsGone) {
  Growing members;
  const Member& late = members.join(kFounders);
  std::uint32_t lost = 0, kept = 0;
  members.world.crash(2);
  ASSERT_TRUE(members.world.run_until([&] { return !late.progress.contains(2); }, 10'000'000'000));
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Status status = members.end_of(members.at(kFounders).put(std::to_string(i), "value"));
    EXPECT_TRUE(status == Status::ok || status == Status::lost) << remote::describe(status);
    ++(status == Status::ok ? kept : lost);
  }
  EXPECT_GT(lost, 0U);
  EXPECT_GT(kept, 0U);
}

TEST(StoreLaterMembers, ComeAndGoWithoutEnd) {
  Growing members(kMost - kFounders);
  members.put(0, "key", "0");
  for (Rank rank = kFounders; rank < kMost; ++rank) {
    members.join(rank);
    members.put(rank, "key", std::to_string(rank));
    if (rank % 2 == 0) {
      members.world.crash(rank);
    } else {
      members.member(rank).group->leave();
    }
    members.until_gone(rank);
    EXPECT_EQ(members.get(1, "key"), std::to_string(rank));
  }
}

TEST(StoreLaterMembers, MustHaveBeenExpected) {
  Growing members;
  members.enter(kFounders);
  const std::unique_ptr<Group>& late = members.nodes[kFounders].group;
  const auto thrown_with = [&](std::uint32_t most) {
    return what_is_thrown_by([&] { const GroupMembers alone(*late, most); });
  };
  EXPECT_EQ(late->founders(), kFounders);
  EXPECT_TRUE(contains(thrown_with(0), "with this process 4 members have come so far"));
  EXPECT_TRUE(contains(thrown_with(kFounders), "at most 3 are expected"));
  EXPECT_TRUE(contains(thrown_with(kFounders - 1), "most is 2, and must be 3"));
  EXPECT_TRUE(contains(thrown_with(kMaxMembers + 1), "kMaxMembers"));
}

/// A founder that does not know of a later member would give the locks away that it holds.
TEST(StoreLaterMembers, AgreeWithTheFoundersOnHowManyMayCome) {
  Growing members;
  members.enter(kFounders);
  Growing::Node& late = members.nodes[kFounders];
  members.world.on(
      kFounders, [&] { late.member = std::make_unique<Member>(std::move(late.group), kMost + 1); });
  ASSERT_TRUE(members.world.run_until([&] { return late.member != nullptr; }, 10'000'000'000));
  EXPECT_EQ(members.end_of(late.member->store.put("key", "value")), Status::refused);
  members.put(0, "key", "value");
}

/// Their locks are repaired among the founders, whether a later member is there or dies.
TEST(StoreLaterMembers, LeaveTheFoundersSegmentsAlone) {
  Growing members;
  std::vector<std::unique_ptr<SegmentSpace>> spaces;
  for (Rank rank = 0; rank < kFounders; ++rank)
    spaces.push_back(std::make_unique<SegmentSpace>(members.member(rank).progress,
                                                    SpaceOptions{.pool_bytes = 4096}));
  auto made = spaces[0]->allocate({.bytes = 8, .coherence = Coherence::strict});
  ASSERT_EQ(members.end_of(made), Status::ok);
  const Key key = made.result().key;
  const auto lock_and_unlock = [&](Rank by) {
    auto lock = spaces[by]->lock(key);
    EXPECT_EQ(members.end_of(lock), Status::ok);
    auto unlock = spaces[by]->unlock(key);
    EXPECT_EQ(members.end_of(unlock), Status::ok);
  };
  lock_and_unlock(1);
  members.join(kFounders);
  lock_and_unlock(2);
  members.world.crash(kFounders);
  members.until_gone(kFounders);
  lock_and_unlock(1);
  lock_and_unlock(0);
  spaces.clear();
}

// --- real processes ------------------------------------------------------------------------------

struct StoreJoins : test::OnProcesses {
  [[nodiscard]] GroupOptions options(Rank rank) const { return {.rendezvous = rendezvous(rank)}; }
  /// All of them, at work.
  [[nodiscard]] std::vector<Process> founders_with(const StoreOptions& store) const {
    std::vector<Process> founders;
    for (Rank rank = 0; rank < members; ++rank)
      founders.emplace_back([=, this](Parent& parent) {
        const auto fabric = join(rank);
        Member member(std::make_unique<Group>(*fabric, options(rank)), kMostThatJoin, store);
        return use(parent, member, std::to_string(rank));
      });
    for (Process& founder : founders) EXPECT_EQ(founder.receive_line(), "works");
    return founders;
  }
  /// What it does with its store until its parent ends it; and tells its state when that asks.
  static int use(Parent& parent, Member& member, const std::string& own_key) {
    std::uint64_t round = 0;
    const auto increment = [&](std::optional<std::span<const std::byte>> current) {
      round = 0;
      if (current && current->size() == sizeof round)
        std::memcpy(&round, current->data(), sizeof round);
      ++round;
      return StoreUpdate::put(bytes_of(round));
    };
    const std::uint64_t patience_ns = std::uint64_t{kPatienceMs} * 1'000'000;
    for (bool told = false;;) {
      auto counted = member.store.update("all", increment);
      if (!counted.outcome(patience_ns).changed()) return give_up(parent, member);
      auto own = member.store.put(own_key, std::string_view("value"));
      if (own.wait(patience_ns) != Status::ok) return give_up(parent, member);
      if (!std::exchange(told, true)) parent.send_line("works");
      pollfd asked{.fd = parent.descriptor(), .events = POLLIN, .revents = 0};
      if (poll(&asked, 1, 0) == 1 && parent.receive_line() == "state")
        parent.send_line(member.store.describe_moves());
    }
  }
  static int give_up(Parent& parent, Member& member) {
    parent.send_line("gives up: " + member.store.describe_moves());
    return 1;
  }
  /// What all that work say, if the test has failed.
  static std::string states(std::vector<Process>& founders) {
    if (!HasFailure()) return {};
    std::string text;
    for (Process& founder : founders) {
      founder.send_line("state");
      text += "\n" + founder.receive_line();
    }
    return text;
  }
};

TEST_P(StoreJoins, GoOnThoughTheOneThatJoinedIsKilled) {
  std::vector<Process> founders = founders_with(test::tiny_store());
  for (const char* as : {"first", "second"}) {  // each comes when the other is gone
    Process late([=, this](Parent& parent) {
      Member member(Group::join(as, options(kFounders), kPatienceMs), kMostThatJoin);
      return use(parent, member, as);
    });
    EXPECT_EQ(late.receive_line(), "works");
    ASSERT_EQ(states(founders), "");
    late.kill();
  }
  Process last([this](Parent& parent) {  // nothing that they had locked keeps it out
    Member member(Group::join("last", options(kFounders), kPatienceMs), kMostThatJoin);
    return use(parent, member, "last");
  });
  EXPECT_EQ(last.receive_line(), "works");
  EXPECT_EQ(states(founders), "");
  last.kill();
  for (Process& founder : founders) founder.kill();
}

TEST_P(StoreJoins, GoOnWhileTheOneThatJoinsTakesKeys) {
  std::vector<Process> founders = founders_with(roomy_store());
  const auto has_all = [](Store& store, std::uint64_t patience_ns) {
    for (std::uint64_t key = 0; key < 100; ++key)
      if (auto get = store.get(key); get.outcome(patience_ns).text() != std::to_string(key))
        return false;
    return true;
  };
  const std::uint64_t patience_ns = std::uint64_t{kPatienceMs} * 1'000'000;
  Process late([=, this](Parent& parent) {
    StoreOptions contributing = roomy_store();
    contributing.contributes = true;
    Member member(Group::join("late", options(kFounders), kPatienceMs), kMostThatJoin,
                  contributing);
    Store& store = member.store;
    for (std::uint64_t key = 0; key < 100; ++key)
      if (store.put(key, std::to_string(key)).wait(patience_ns) != Status::ok)
        return give_up(parent, member);
    if (auto share = store.settle(); share.wait(patience_ns) != Status::ok) {
      parent.send_line("does not get its share: " + std::string(remote::describe(share.status())) +
                       "; " + store.describe_moves());
      return 2;
    }
    if (store.statistics().keys < 8 || !has_all(store, patience_ns)) return 3;
    parent.send_line("has taken keys");
    for (;;) store.poll();
  });
  EXPECT_EQ(late.receive_line(), "has taken keys");
  ASSERT_EQ(states(founders), "");
  Process last([=, this](Parent& parent) {
    Member member(Group::join("last", options(kFounders), kPatienceMs), kMostThatJoin,
                  roomy_store());
    if (!has_all(member.store, patience_ns)) return give_up(parent, member);
    parent.send_line("has read all");
    for (;;) member.store.poll();
  });
  EXPECT_EQ(last.receive_line(), "has read all");
  EXPECT_EQ(states(founders), "");
  late.kill();
  last.kill();
  for (Process& founder : founders) founder.kill();
}

DUNLIN_RUN_ON(test::backends(), StoreJoins);

}  // namespace
}  // namespace dunlin
