#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/durable_group.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Durable subgroups that come at run time and begin again with a quorum of their last view (MC-Q5,
/// MC-Q6), on simulated networks and disks.
namespace dunlin {
namespace {

using test::contains;
using test::DurableGroup;
using test::FoundLog;
using Texts = std::vector<std::string>;

constexpr Rank kFounders = 3;
constexpr Rank kOthers = 4;  // keep the group's quorum when members of the subgroup are gone

/// What was ever delivered or replayed, over all lives: one sequence.
struct History {
  Texts texts;
  void take(std::size_t place, const std::string& text) {
    if (place >= texts.size())
      texts.push_back(text);
    else
      EXPECT_EQ(texts[place], text) << "another order, at place " << place;
  }
};

/// It has a state, as a topic has: all that it was given.
struct Member {
  log::SimulatedDisk* disk = nullptr;
  std::unique_ptr<Group> group;
  std::unique_ptr<Multicast> cast;
  Texts given;            // since it joined: replayed, loaded and delivered
  std::size_t floor = 0;  // so many had been given to any member when it joined
  bool delivers = false;  // beside the replay
  std::uint64_t to_send = 0;
  std::uint64_t sent = 0;
  std::string errors;
  std::string why_left;
  bool stays = false;  // it joins again when it is out
  bool dead = false;
};

/// One life of a group. No member is in the subgroup before it joins.
class QuorumGroup {
 public:
  QuorumGroup(DurableGroup::Disks& disks, std::uint64_t seed, std::string life, History& history,
              multicast::LogTrim trim = {})
      : world(sim::profile("ib100"), static_cast<std::uint32_t>(disks.size()) + kOthers, seed),
        members(disks.size()),
        others_(kOthers),
        life_(std::move(life)),
        history_(history),
        trim_(trim) {
    for (Rank rank = 0; rank < world.size(); ++rank) {
      auto group = std::make_unique<Group>(world.fabric(rank));
      if (rank >= members.size()) {
        others_[rank - members.size()] = std::move(group);
        world.attach(rank, [&other = *others_[rank - members.size()]] { return other.poll(); });
        continue;
      }
      members[rank].disk = disks[rank].get();
      members[rank].group = std::move(group);
      world.attach(rank, [this, rank] { return step(rank); });
    }
  }
  ~QuorumGroup() {
    for (Member& member : members) member.cast.reset();
  }
  QuorumGroup(const QuorumGroup&) = delete;
  QuorumGroup& operator=(const QuorumGroup&) = delete;

  void join(Rank rank) {
    members[rank].stays = true;
    world.on(rank, [this, rank] { begin_or_not(rank); });
  }
  void leave(Rank rank) {
    members[rank].stays = false;
    world.on(rank, [this, rank] {
      if (members[rank].cast) members[rank].cast->leave();
    });
  }
  void send(Rank rank, std::uint64_t messages) {
    members[rank].to_send += messages;
    world.on(rank, [] {});
  }
  void crash(Rank rank) {
    members[rank].dead = true;
    world.crash(rank);
  }
  bool have(const std::vector<Rank>& ranks, std::size_t messages) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(
              ranks, [&](Rank rank) { return members[rank].given.size() >= messages; });
        },
        1'000'000'000);
  }
  [[nodiscard]] std::string what_is_up() const {
    std::string text;
    for (const Member& member : members)
      text += "waits: " + (member.cast ? member.cast->why_waiting() : "is not in it") +
              "\nleft: " + member.why_left + "\nerrors: " + member.errors + "\n";
    return text;
  }
  bool waits(Rank rank, const std::string& for_what) {
    return world.run_until(
        [&] { return members[rank].cast && contains(members[rank].cast->why_waiting(), for_what); },
        1'000'000'000);
  }

  sim::World world;
  std::vector<Member> members;

 private:
  /// Its disk may fail at once.
  void begin_or_not(Rank rank) {
    try {
      begin(rank);
    } catch (const Error& error) {
      members[rank].errors += std::string(error.what()) + "\n";
    }
  }
  void begin(Rank rank) {
    Member& member = members[rank];
    member.cast.reset();
    member.given.clear();
    member.floor = history_.texts.size();
    member.delivers = false;
    MulticastOptions options = DurableGroup::options(member.disk);
    options.log_quorum = true;
    options.log_trim = trim_;
    SubgroupJoin join;
    for (Rank founder = 0; founder < kFounders; ++founder)
      join.founders.push_back(world.fabric(0).member_name(founder));
    member.cast = Multicast::join(*member.group, "orders", std::move(options), std::move(join));
    const auto take = [this, &member](const std::string& text) {
      history_.take(member.given.size(), text);
      member.given.push_back(text);
    };
    member.cast->on_state([&member] { return test::state_of(member.given); },
                          [take, &member](std::span<const std::byte> state) {
                            EXPECT_TRUE(member.given.empty());
                            for (const std::string& text : test::texts_of(state)) take(text);
                          });
    member.cast->on_replay([take, &member](const multicast::Logged& logged) {
      EXPECT_FALSE(member.delivers);
      take(text_of(logged.message));
    });
    member.cast->on_delivery([take, &member](std::span<const multicast::Delivery> batch) {
      if (!std::exchange(member.delivers, true)) {
        EXPECT_GE(member.given.size(), member.floor) << "something is lost";
      }
      for (const auto& delivery : batch) take(text_of(delivery.message));
    });
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::size_t step(Rank rank) {
    Member& member = members[rank];
    std::size_t done = 0;
    if (member.cast && member.cast->left() && member.stays) {
      member.why_left = member.cast->why_left();
      begin_or_not(rank);
      ++done;
    }
    for (; member.cast && member.to_send > 0; --member.to_send, ++member.sent, ++done) {
      const std::string text =
          life_ + ":" + std::to_string(rank) + ":" + std::to_string(member.sent);
      if (member.cast->send(std::as_bytes(std::span(text))) != multicast::SendResult::sent) break;
    }
    try {
      done += member.group->poll();
    } catch (const Error& error) {
      ++done;
      member.errors += std::string(error.what()) + "\n";
    }
    return done;
  }

  std::vector<std::unique_ptr<Group>> others_;
  std::string life_;
  History& history_;
  multicast::LogTrim trim_;
};

TEST(ChangingQuorum, BeginsAgainWithTwoOfThreeAndTakesInTheThird) {
  for (const bool is_lost : {false, true}) {
    SCOPED_TRACE(is_lost);
    DurableGroup::Disks disks = DurableGroup::make_disks(3, 1);
    History history;
    {
      QuorumGroup group(disks, 1, "a", history);
      for (Rank rank = 0; rank < 3; ++rank) group.join(rank);
      group.send(2, 30);
      ASSERT_TRUE(group.have({0, 1, 2}, 30)) << group.members[0].errors;
      for (const auto& disk : disks) disk->crash();
    }
    if (is_lost) disks[0] = std::move(DurableGroup::make_disks(1, 9).front());
    QuorumGroup group(disks, 2, "b", history);
    group.join(1);
    ASSERT_TRUE(group.waits(1, "no quorum of view 1 ('node0', 'node1', 'node2') is here"));
    EXPECT_FALSE(group.members[1].cast->joined());
    group.join(2);
    group.send(1, 20);
    ASSERT_TRUE(group.have({1, 2}, 50)) << group.members[1].errors << group.members[2].errors;
    EXPECT_EQ(group.members[1].cast->why_waiting(), "");
    EXPECT_TRUE(group.members[1].cast->joined());
    group.join(0);
    ASSERT_TRUE(group.have({0}, 50)) << group.members[0].errors;
    group.send(0, 5);
    ASSERT_TRUE(group.have({0, 1, 2}, 55));
    for (const Member& member : group.members) EXPECT_EQ(member.errors, "");
    for (const auto& disk : disks) disk->crash();
    for (const auto& disk : disks) EXPECT_EQ(test::read_log(*disk).messages, history.texts);
  }
}

/// MC-Q6
TEST(ChangingQuorum, BeginsANewHistoryOnlyWithAllFounders) {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 3);
  History history;
  QuorumGroup group(disks, 3, "a", history);
  group.join(0);
  group.join(2);
  ASSERT_TRUE(group.waits(2, "a member that is gone may not be ('node1')"));
  group.send(0, 5);
  group.world.run_for(50'000'000);
  EXPECT_TRUE(history.texts.empty());
  group.join(1);
  ASSERT_TRUE(group.have({0, 1, 2}, 5)) << group.members[0].errors;
}

/// The one that waited first would have given the others the state.
TEST(ChangingQuorum, WaitsOnWhenTheFirstOfThoseThatWaitIsGone) {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 4);
  History history;
  {
    QuorumGroup group(disks, 4, "a", history);
    for (Rank rank = 0; rank < 3; ++rank) group.join(rank);
    group.send(0, 10);
    ASSERT_TRUE(group.have({0, 1, 2}, 10));
    for (const auto& disk : disks) disk->crash();
  }
  disks[1] = std::move(DurableGroup::make_disks(1, 9).front());
  QuorumGroup group(disks, 5, "b", history);
  group.join(0);
  ASSERT_TRUE(group.waits(0, "no quorum"));
  group.join(1);
  ASSERT_TRUE(group.waits(1, "no quorum"));
  group.crash(0);
  group.join(2);
  ASSERT_TRUE(group.waits(2, "no quorum")) << group.members[2].errors;
  ASSERT_TRUE(group.waits(1, "no quorum")) << group.members[1].errors;
  EXPECT_EQ(group.members[1].errors + group.members[2].errors, "");
}

/// MC-Q2
TEST(ChangingQuorum, StopsWithoutAQuorumAndWaitsForItWhenItIsJoinedAnew) {
  DurableGroup::Disks disks = DurableGroup::make_disks(3, 6);
  History history;
  QuorumGroup group(disks, 6, "a", history);
  for (Rank rank = 0; rank < 3; ++rank) group.join(rank);
  group.send(0, 10);
  ASSERT_TRUE(group.have({0, 1, 2}, 10));
  group.leave(2);
  group.leave(0);
  ASSERT_TRUE(group.waits(1, "no quorum")) << group.members[1].errors;
  EXPECT_TRUE(contains(group.members[1].why_left, "are no quorum of it, so this member stops"));
  group.send(1, 1);
  group.join(0);
  ASSERT_TRUE(group.have({0, 1}, 11)) << group.members[0].errors;
}

TEST(ChangingQuorum, NeedsFounders) {
  DurableGroup::Disks disks = DurableGroup::make_disks(1, 1);
  sim::World world(sim::profile("ib100"), 1, 1);
  Group group(world.fabric(0));
  MulticastOptions options = DurableGroup::options(disks[0].get());
  options.log_quorum = true;
  EXPECT_TRUE(contains(test::what_is_thrown_by([&] {
                         static_cast<void>(Multicast::join(group, "orders", options, {}));
                       }),
                       "log_quorum needs SubgroupJoin::founders"));
}

// --- seeds ---------------------------------------------------------------------------------------

struct Found {
  std::uint64_t given = 0;
  std::uint64_t without_one = 0;  // lives in which messages were delivered with a founder absent
  std::uint64_t lost = 0;         // disks
};

/// One disk is replaced by an empty one, if a quorum of the last view does not need it. All logs
/// prove that this view began, or a quorum of the view before would be needed, too (MC-Q3).
bool lose_a_disk(DurableGroup::Disks& disks, std::mt19937_64& random) {
  std::vector<FoundLog> logs;
  logs.reserve(disks.size());
  for (auto& disk : disks) logs.push_back(test::read_log(*disk));
  for (const FoundLog& log : logs)
    if (log.state.views.empty() || log.state.views.back() != logs.front().state.views.back() ||
        log.state.views.back().members.size() != logs.size() ||
        log.state.end.number <= log.state.views.back().place.number + 1)
      return false;
  const std::size_t lost = random() % disks.size();
  disks[lost] = std::move(DurableGroup::make_disks(1, random()).front());
  return true;
}

void happen(QuorumGroup& group, std::mt19937_64& random) {
  const auto rank = static_cast<Rank>(random() % group.members.size());
  Member& member = group.members[rank];
  if (member.dead) return;
  switch (random() % 6) {
    case 0:
      return group.crash(rank);
    case 1:
      return group.leave(rank);
    case 2:
      if (member.cast && !member.cast->left()) member.disk->fail_next_sync();
      return;
    default:
      if (!member.cast || member.cast->left()) group.join(rank);
      return group.send(rank, random() % 20);
  }
}

void live(DurableGroup::Disks& disks, std::mt19937_64& random, const std::string& life,
          History& history, Found& found, bool is_last) {
  const bool has_lost = random() % 4 == 0 && lose_a_disk(disks, random);
  found.lost += has_lost ? 1 : 0;
  const multicast::LogTrim trim{.every_bytes = random() % 2 == 0 ? 0 : 500 + random() % 2'000};
  QuorumGroup group(disks, random(), life, history, trim);
  const std::size_t before = history.texts.size();
  bool one_is_absent = false;
  for (Rank rank = 0; rank < group.members.size(); ++rank) {
    const bool absent = !is_last && !has_lost && random() % 4 == 0;
    one_is_absent = one_is_absent || (absent && rank < kFounders);
    if (absent) group.crash(rank);
    if (absent || (rank >= kFounders && !is_last && random() % 2 == 0)) continue;
    group.world.run_for(random() % 2 * (random() % 1'000'000));
    group.join(rank);
    group.send(rank, 5 + random() % 30);
  }
  for (std::uint64_t events = is_last ? 0 : random() % 6; events > 0; --events) {
    group.world.run_for(1 + random() % 1'500'000);
    happen(group, random);
  }
  group.world.run_for(1 + random() % 3'000'000);
  if (is_last) {
    std::vector<Rank> all;
    for (Rank rank = 0; rank < kFounders; ++rank) all.push_back(rank);
    group.send(0, 1);
    EXPECT_TRUE(group.have(all, before + 1)) << "does not begin again: " << group.what_is_up();
    group.world.run_for(100'000'000);
    for (const Rank rank : all) EXPECT_EQ(group.members[rank].given, history.texts) << rank;
  }
  for (const Member& member : group.members)
    EXPECT_FALSE(contains(member.errors, "another history")) << member.errors;
  found.given += history.texts.size() - before;
  found.without_one += one_is_absent && history.texts.size() > before ? 1 : 0;
  for (auto& disk : disks) disk->crash();
}

/// Life after life on the same disks; members come, leave and crash, disks fail and are lost.
TEST(ChangingQuorum, KeepsOneHistoryOverLivesFromSeeds) {
  Found found;
  const std::uint64_t kSeeds = test::rounds(150);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    DurableGroup::Disks disks = DurableGroup::make_disks(kFounders + seed % 2, seed);
    History history;
    for (int life = 0; life < 6; ++life) {
      SCOPED_TRACE("life " + std::to_string(life));
      live(disks, random, std::to_string(life), history, found, life == 5);
      if (testing::Test::HasFailure()) return;
    }
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(found.given, 100 * kSeeds);
  EXPECT_GT(found.without_one, kSeeds / 3);
  EXPECT_GT(found.lost, kSeeds / 10);
}

}  // namespace
}  // namespace dunlin
