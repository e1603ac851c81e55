#include <functional>

#include "multicast/changing_group.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// Subgroups that come and go at run time, as a program sees them.
namespace dunlin {
namespace {

using test::ChangingGroup;
using test::ChangingMember;
using test::contains;
using test::Said;
using test::what_is_thrown_by;

constexpr std::uint64_t kWhileNs = 1'000'000;
constexpr std::uint64_t kStep = test::kSanitized ? 5 : 1;  // from one of the moments to the next

TEST(ChangingSubgroups, BeginWithTheFirstMemberAndTakeInOthers) {
  ChangingGroup cluster(3);
  ChangingMember& a = cluster[0].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined(); }));
  EXPECT_EQ(a.multicast->subgroup().members, (std::vector<Rank>{0}));
  ChangingMember& c = cluster[2].join("topic", {}, {.sends = false});
  ASSERT_TRUE(cluster.until([&] { return c.multicast->joined(); }));
  cluster.world.run_for(kWhileNs);
  EXPECT_EQ(a.multicast->subgroup().members, (std::vector<Rank>{0, 2}));
  EXPECT_EQ(a.multicast->subgroup().senders, (std::vector<std::uint32_t>{0}));
  cluster.world.on(0, [&] { EXPECT_TRUE(a.send()); });
  ASSERT_TRUE(cluster.until([&] { return c.history.size() == 1; }));
  EXPECT_EQ(c.multicast->send({}), multicast::SendResult::not_a_sender);
}

TEST(ChangingSubgroups, GiveALateMemberTheStateAndThenEachMessageOnce) {
  ChangingGroup cluster(2);
  ChangingMember& a = cluster[0].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined(); }));
  cluster.world.attach(0, [&]() -> std::size_t {
    if (a.accepted == 500) return 0;
    a.send();
    return 1;
  });
  ASSERT_TRUE(cluster.until([&] { return a.accepted > 100; }));
  ChangingMember& b = cluster[1].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return a.history.size() == 500 && b.history.size() == 500; }));
  EXPECT_GE(b.loaded, 90U);
  EXPECT_LT(b.loaded, 500U);
  EXPECT_TRUE(b.history == a.history);
}

/// What was delivered of it beyond the end of a generation does not come again when it has left.
TEST(ChangingSubgroups, LoseNothingOfAMemberThatLeavesAndComesBack) {
  ChangingGroup cluster(3);
  // It leaves at once.
  const MulticastOptions unordered{.mode = multicast::Mode::unordered, .hand_over_ms = 0};
  const auto are_in = [&] {
    for (Rank rank = 0; rank < 3; ++rank) {
      const ChangingMember* const member = cluster[rank].in("topic");
      if (!member->multicast->joined() || member->multicast->subgroup().members.size() != 3)
        return false;
    }
    return true;
  };
  for (Rank rank = 0; rank < 3; ++rank) cluster[rank].join("topic", unordered);
  ASSERT_TRUE(cluster.until(are_in));
  cluster.world.run_for(kWhileNs);
  cluster.world.pause(1, 200'000);  // so that nothing counts when the generation ends
  ChangingMember& leaver = *cluster[2].in("topic");
  const auto send = [&](ChangingMember& member, int messages) {
    cluster.world.on(2, [&member, messages] {
      for (int i = 0; i < messages; ++i) EXPECT_TRUE(member.send());
    });
  };
  send(leaver, 3);
  cluster.world.run_for(50'000);
  ASSERT_EQ(cluster[0].in("topic")->history.size(), 3U);
  cluster.world.on(2, [&] { leaver.multicast->leave(); });
  ASSERT_TRUE(cluster.until([&] { return leaver.multicast->left(); }));
  cluster.world.run_for(2 * kWhileNs);
  ChangingMember& again = cluster[2].join("topic", unordered);
  ASSERT_TRUE(cluster.until(are_in));
  cluster.world.run_for(2 * kWhileNs);
  send(again, 5);
  cluster.world.run_for(5 * kWhileNs);
  for (Rank rank = 0; rank < 3; ++rank) {
    const std::vector<Said>& history = cluster[rank].in("topic")->history;
    EXPECT_EQ(std::ranges::count(history, again.membership, &Said::membership), 5) << rank;
  }
}

/// GRP-D6 says what a member that leaves still delivers.
TEST(ChangingSubgroups, LetMembersLeaveAfterTheyDeliveredWhatCounts) {
  ChangingGroup cluster(3);
  std::vector<ChangingMember*> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(&cluster[rank].join("topic", {}));
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(all, [](const ChangingMember* member) {
      return member->multicast->joined() && member->multicast->subgroup().members.size() == 3;
    });
  }));
  cluster.world.on(1, [&] {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(all[1]->send());
  });
  cluster.world.on(2, [&] { all[2]->multicast->leave(); });
  ASSERT_TRUE(cluster.until([&] { return all[2]->multicast->left(); }));
  EXPECT_EQ(all[2]->multicast->why_left(), "");
  EXPECT_EQ(all[2]->multicast->send({}), multicast::SendResult::ended);
  ASSERT_TRUE(
      cluster.until([&] { return all[0]->history.size() == 10 && all[1]->history.size() == 10; }));
  EXPECT_EQ(all[0]->multicast->subgroup().members, (std::vector<Rank>{0, 1}));
  EXPECT_LE(all[2]->history.size(), 10U);
  EXPECT_EQ(cluster[0].views.size(), 1U) << "the view goes on";
}

TEST(ChangingSubgroups, AreRemovedByAnyMemberOfTheGroup) {
  ChangingGroup cluster(3);
  ChangingMember& a = cluster[0].join("topic", {});
  ChangingMember& b = cluster[1].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined() && b.multicast->joined(); }));
  cluster.world.on(2, [&] { cluster[2].group->remove_subgroup("topic"); });
  ASSERT_TRUE(cluster.until([&] { return a.multicast->left() && b.multicast->left(); }));
  EXPECT_TRUE(contains(b.multicast->why_left(), "'topic' was removed"));
  cluster.world.run_for(kWhileNs);
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(cluster[rank].group->subgroups().empty());
    EXPECT_TRUE(cluster[rank].changes["topic"].back().members.empty());
  }
  cluster.world.on(2, [&] { cluster[2].group->remove_subgroup("nothing"); });
  cluster.world.run_for(kWhileNs);
  ChangingMember& again = cluster[2].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return again.multicast->joined(); }));
  EXPECT_TRUE(again.history.empty());
}

TEST(ChangingSubgroups, RefuseAMemberWithOtherOptions) {
  ChangingGroup cluster(2);
  ChangingMember& a = cluster[0].join("topic", {}, {.options = "type 7", .label = "shapes"});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined(); }));
  ChangingMember& other = cluster[1].join("topic", {}, {.options = "type 8"});
  ASSERT_TRUE(cluster.until([&] { return other.multicast->left(); }));
  EXPECT_TRUE(contains(other.multicast->why_left(), "type 7"));
  EXPECT_TRUE(contains(other.multicast->why_left(), "type 8"));
  ChangingMember& mode =
      cluster[1].join("topic", {.mode = multicast::Mode::unordered}, {.options = "type 7"});
  ASSERT_TRUE(cluster.until([&] { return mode.multicast->left(); }));
  EXPECT_TRUE(contains(mode.multicast->why_left(), "unordered"));
  ChangingMember& same = cluster[1].join("topic", {}, {.options = "type 7"});
  ASSERT_TRUE(cluster.until([&] { return same.multicast->joined(); }));
  EXPECT_EQ(cluster[1].group->subgroups().at(0).label, "shapes");
}

TEST(ChangingSubgroups, ChangeTheirSenders) {
  ChangingGroup cluster(2);
  ChangingMember& a = cluster[0].join("topic", {});
  ChangingMember& b = cluster[1].join("topic", {}, {.sends = false});
  ASSERT_TRUE(cluster.until([&] { return b.multicast->joined() && a.multicast->joined(); }));
  cluster.world.on(1, [&] { b.multicast->set_sends(true); });
  ASSERT_TRUE(cluster.until([&] { return b.send(); }));
  cluster.world.on(1, [] {});
  ASSERT_TRUE(cluster.until([&] { return a.history.size() == 1; }));
  cluster.world.on(1, [&] { b.multicast->set_sends(false); });
  ASSERT_TRUE(
      cluster.until([&] { return b.multicast->send({}) == multicast::SendResult::not_a_sender; }));
}

TEST(ChangingSubgroups, BeginOnceAllFoundersHaveCome) {
  ChangingGroup cluster(2);
  const SubgroupJoin join{.founders = cluster[0].group->view().members};
  ChangingMember& a = cluster[0].join("topic", {}, join);
  cluster.world.run_for(kWhileNs);
  EXPECT_FALSE(a.multicast->joined());
  ChangingMember& b = cluster[1].join("topic", {}, join);
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined() && b.multicast->joined(); }));
  EXPECT_EQ(a.generations.size(), 1U);
}

TEST(ChangingSubgroups, WedgeNoOther) {
  ChangingGroup cluster(2);
  ChangingMember& other = cluster[0].join("other", {});
  ChangingMember& there = cluster[1].join("other", {});
  ASSERT_TRUE(cluster.until(
      [&] { return there.multicast->joined() && other.generations.back().members.size() == 2; }));
  const std::size_t before = other.generations.size();
  for (int i = 0; i < 20; ++i) {
    ChangingMember& topic = cluster[1].join("topic" + std::to_string(i), {});
    ASSERT_TRUE(cluster.until([&] { return topic.multicast->joined(); }));
  }
  EXPECT_EQ(other.generations.size(), before);
  EXPECT_EQ(cluster[0].views.size(), 1U);
}

TEST(ChangingSubgroups, CanBeAsManyAsTopicsOfAVehicle) {
  ChangingGroup cluster(2);
  const MulticastOptions options{.ring_bytes = 1024};
  constexpr std::size_t kTopics = 400;
  std::vector<ChangingMember*> all;
  for (std::size_t i = 0; i < kTopics; ++i)
    for (Rank rank = 0; rank < 2; ++rank)
      all.push_back(&cluster[rank].join("topic" + std::to_string(i), options));
  const auto has_two = [](const ChangingMember* member) {
    return member->multicast->joined() && member->multicast->subgroup().members.size() == 2;
  };
  ASSERT_TRUE(cluster.until([&] { return std::ranges::all_of(all, has_two); }));
  for (Rank rank = 0; rank < 2; ++rank)
    cluster.world.on(rank, [&, rank] {
      for (std::size_t i = rank; i < all.size(); i += 2) EXPECT_TRUE(all[i]->send());
    });
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(
        all, [](const ChangingMember* member) { return member->history.size() == 2; });
  }));
  cluster.world.crash(0);
  ASSERT_TRUE(cluster.until([&] { return !cluster[1].group->why_ended().empty(); }));
}

TEST(ChangingSubgroups, GoOnWhenTheLeaderFails) {
  ChangingGroup cluster(4);
  std::vector<ChangingMember*> all;
  for (Rank rank = 0; rank < 4; ++rank) all.push_back(&cluster[rank].join("topic", {}));
  const auto of = [&](std::size_t members) {
    return [members](const ChangingMember* member) {
      return member->multicast->joined() && member->multicast->subgroup().members.size() == members;
    };
  };
  ASSERT_TRUE(cluster.until([&] { return std::ranges::all_of(all, of(4)); }));
  for (Rank rank = 0; rank < 4; ++rank)
    cluster.world.on(rank, [&, rank] { EXPECT_TRUE(all[rank]->send()); });
  cluster.world.crash(0);
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(all.begin() + 1, all.end(), of(3)) && all[3]->history.size() >= 3 &&
           all[1]->history.size() == all[3]->history.size();
  }));
  EXPECT_EQ(all[1]->history, all[3]->history);
  EXPECT_EQ(all[1]->history, all[2]->history);
  EXPECT_EQ(all[1]->generations.back().view, 2U);
}

TEST(ChangingSubgroups, OutliveTheMulticastThatIsDestroyed) {
  ChangingGroup cluster(3);
  for (Rank rank = 0; rank < 3; ++rank) cluster[rank].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return cluster[0].in("topic")->multicast->joined(); }));
  cluster.world.run_for(kWhileNs);
  cluster.world.on(1, [&] { cluster[1].members.clear(); });
  ChangingMember& a = *cluster[0].in("topic");
  ASSERT_TRUE(cluster.until([&] { return a.multicast->subgroup().members.size() == 2; }));
  cluster.world.on(0, [&] { EXPECT_TRUE(a.send()); });
  ASSERT_TRUE(cluster.until([&] { return cluster[2].in("topic")->history.size() == 1; }));
  ChangingMember& again = cluster[1].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return again.multicast->joined(); }));
  EXPECT_EQ(again.history, a.history);
}

/// Node 1 has come in, and `end` ends the subgroup for node 0 so long after that. Whether node 1
/// had been given the state by then is left open, as is whether it is the state of node 0 that it
/// has.
void go_on_when_the_only_one_with_the_state_goes(std::uint64_t after_ns,
                                                 const std::function<void(ChangingGroup&)>& end,
                                                 int& anew) {
  ChangingGroup cluster(4);
  ChangingMember& a = cluster[0].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined() && a.send(); }));
  cluster.world.on(0, [] {});
  ASSERT_TRUE(cluster.until([&] { return a.history.size() == 1; }));
  ChangingMember& b = cluster[1].join("topic", {});
  ChangingMember& c = cluster[2].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return !b.generations.empty(); }));
  cluster.world.run_for(after_ns);
  end(cluster);
  ASSERT_TRUE(cluster.until([&] {
    return b.multicast->joined() && c.multicast->joined() &&
           b.multicast->subgroup().members == std::vector<Rank>{1, 2};
  })) << b.multicast->why_left()
      << c.multicast->why_left();
  cluster.world.on(1, [&] { EXPECT_TRUE(b.send()); });
  const std::size_t before = b.history.size();
  ASSERT_TRUE(cluster.until([&] { return b.history.size() == before + 1; }));
  ASSERT_TRUE(cluster.until([&] { return c.history.size() == before + 1; }));
  EXPECT_EQ(b.history, c.history);
  EXPECT_EQ(b.began, c.began);
  if (before == 0) ++anew;
}

TEST(ChangingSubgroups, BeginAnewForThoseThatAskedForAStateInVain) {
  int anew = 0;
  int all = 0;
  for (std::uint64_t moment = 0; moment < 40; moment += kStep, ++all)
    go_on_when_the_only_one_with_the_state_goes(
        moment * 1'000,
        [](ChangingGroup& cluster) {
          cluster.world.on(0, [&cluster] { cluster[0].members.clear(); });
        },
        anew);
  EXPECT_GT(anew, 0);
  EXPECT_LT(anew, all);
}

TEST(ChangingSubgroups, BeginAnewWhenTheOneThatHadTheStateFails) {
  int anew = 0;
  int all = 0;
  for (std::uint64_t moment = 0; moment < 40; moment += kStep, ++all)
    go_on_when_the_only_one_with_the_state_goes(
        moment * 1'000, [](ChangingGroup& cluster) { cluster.world.crash(0); }, anew);
  EXPECT_GT(anew, 0);
  EXPECT_LT(anew, all);
}

/// From the given moment on node 2 hears nothing from the leader, which changes the subgroup twice
/// more if it can, and fails.
void leave_as_the_leader_fails(std::uint64_t after_ns, int& told, int& untold) {
  ChangingGroup cluster(3);
  std::vector<ChangingMember*> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(&cluster[rank].join("topic", {}));
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(all, [](const ChangingMember* member) {
      return member->multicast->joined() && member->multicast->subgroup().members.size() == 3;
    });
  }));
  cluster.world.run_for(kWhileNs);
  for (Rank rank = 0; rank < 3; ++rank)
    cluster.world.on(rank, [&, rank] { EXPECT_TRUE(all[rank]->send()); });
  cluster.world.on(2, [&] { all[2]->multicast->leave(); });
  cluster.world.run_for(after_ns);
  cluster.world.cut(0, 2);
  for (const bool sends : {false, true}) {
    cluster.world.on(1, [&] { all[1]->multicast->set_sends(sends); });
    cluster.world.run_for(30'000);
  }
  (all[2]->multicast->left() ? told : untold)++;
  cluster.world.crash(0);
  ASSERT_TRUE(cluster.until([&] { return all[2]->multicast->left(); }));
  EXPECT_EQ(all[2]->multicast->why_left(), "");
  ASSERT_TRUE(cluster.until([&] {
    return all[1]->multicast->subgroup().view == 2 &&
           all[1]->multicast->subgroup().members == std::vector<Rank>{1};
  }));
  const std::vector<Said>& history = all[2]->history;
  EXPECT_TRUE(history.size() <= all[1]->history.size() &&
              std::equal(history.begin(), history.end(), all[1]->history.begin()));
}

TEST(ChangingSubgroups, LetAMemberLeaveThatHearsOfItFromTheNextLeader) {
  int told = 0;
  int untold = 0;
  for (std::uint64_t moment = 0; moment < 300; moment += 4 * kStep) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    leave_as_the_leader_fails(moment * 500, told, untold);
  }
  EXPECT_GT(told, 0);
  EXPECT_GT(untold, 0);
}

/// Node 2 comes in, and is not given the state, because node 1, which alone has it, goes and comes
/// back. From the given moment on node 2 hears nothing from the leader, which then fails.
void ask_anew_as_the_leader_fails(std::uint64_t after_ns, int& told, int& untold) {
  ChangingGroup cluster(3);
  ChangingMember& first = cluster[1].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return first.multicast->joined(); }));
  cluster.world.run_for(kWhileNs);
  ChangingMember& joiner = cluster[2].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return !joiner.generations.empty(); }));
  cluster.world.cut(1, 2);
  cluster.world.on(1, [&] { cluster[1].members.clear(); });
  cluster.world.run_for(after_ns);
  cluster.world.cut(0, 2);
  ChangingMember& again = cluster[1].join("topic", {});
  cluster.world.run_for(40'000);
  (joiner.multicast->joined() ? told : untold)++;
  cluster.world.crash(0);
  cluster.world.heal(1, 2);
  ASSERT_TRUE(cluster.until([&] {
    return again.multicast->joined() && joiner.multicast->joined() &&
           joiner.multicast->subgroup().members == std::vector<Rank>{1, 2};
  })) << joiner.multicast->why_left();
  cluster.world.on(1, [&] { EXPECT_TRUE(again.send()); });
  ASSERT_TRUE(cluster.until([&] { return !joiner.history.empty(); }));
  ASSERT_TRUE(cluster.until([&] { return !again.history.empty(); }));
  EXPECT_EQ(joiner.history, again.history);
  EXPECT_EQ(joiner.began, again.began);
}

TEST(ChangingSubgroups, BeginAnewForAMemberThatHearsOfItFromTheNextLeader) {
  int told = 0;
  int untold = 0;
  for (std::uint64_t moment = 0; moment < 40; moment += kStep) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    ask_anew_as_the_leader_fails((moment + 1) * 1'000, told, untold);
  }
  EXPECT_GT(told, 0);
  EXPECT_GT(untold, 0);
}

TEST(ChangingSubgroups, TellAJoinerWhyItCannotBeGivenTheState) {
  ChangingGroup cluster(2);
  ChangingMember& a = cluster[0].join("topic", {});
  a.multicast->on_state([]() -> std::vector<std::byte> { throw Error("the disk is full"); },
                        [](std::span<const std::byte>) {});
  ASSERT_TRUE(cluster.until([&] { return a.multicast->joined(); }));
  ChangingMember& b = cluster[1].join("topic", {});
  ASSERT_TRUE(cluster.until([&] { return b.multicast->left(); }));
  EXPECT_TRUE(contains(b.multicast->why_left(), "the disk is full"));
}

TEST(ChangingSubgroups, AreRefusedWithASentence) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "declared"}}});
  const auto refusal = [&](const std::string& name, SubgroupJoin join = {}) {
    return what_is_thrown_by([&] { auto refused = Multicast::join(group, name, {}, join); });
  };
  EXPECT_TRUE(contains(refusal("a b"), "'a b'"));
  EXPECT_TRUE(contains(refusal("declared"), "was declared"));
  EXPECT_TRUE(contains(refusal("a", {.label = std::string(300, 'x')}), "kMaxSubgroupTextBytes"));
  EXPECT_TRUE(contains(refusal("a", {.founders = {"a b"}}), "'a b'"));
  const auto first = Multicast::join(group, "twice", {}, {});
  EXPECT_TRUE(contains(refusal("twice"), "has asked to be"));
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { group.change_subgroup("none", true); }), "not in it"));
}

}  // namespace
}  // namespace dunlin
