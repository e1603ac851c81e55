#include <memory>
#include <string>

#include "group/joining_groups.hpp"
#include "group/letters.hpp"
#include "group/mail.hpp"
#include "support/errors.hpp"

/// Members that come into a group at work, in the simulator.
namespace dunlin {
namespace {

using test::contains;
using test::Town;
using test::what_is_thrown_by;

TEST(JoiningInSimulator, BringsANodeIntoTheNextView) {
  Town town(2, 1);
  ASSERT_TRUE(town.until_view_of({0, 1}));
  town[2].come();
  ASSERT_TRUE(town.until_view_of({0, 1, 2}));
  for (Rank node = 0; node < 3; ++node) {
    EXPECT_EQ(town[node].group->view().number, 2U);
    EXPECT_EQ(town[node].group->view().joined, std::vector<std::string>{"node2"});
    EXPECT_TRUE(town[node].group->view().departed.empty());
    EXPECT_EQ(town[node].group->view().me, node);
  }
  EXPECT_EQ(town[2].views.size(), 1U);
}

TEST(JoiningInSimulator, GivesItWhatWasDeliveredAndThenTheRestInTheSameOrder) {
  for (const bool by_next : {false, true}) {
    Town town(2, 1, 1, {.ring_bytes = 4096});
    if (by_next)
      for (const auto& citizen : town.citizens) citizen->by_next();
    town[0].send(100);
    ASSERT_TRUE(town.until_view_of({0, 1}, 100));
    for (Rank node = 0; node < 2; ++node) town[node].send(2'000);
    town[2].come();
    town[2].send(50);
    ASSERT_TRUE(town.until_view_of({0, 1, 2}, 4'150)) << by_next << town.text();
    EXPECT_EQ(town[2].history.size(), 4'150U);
    EXPECT_EQ(town[2].loads, 1U);
    EXPECT_EQ(town[0].loads, 0U);
  }
}

TEST(JoiningInSimulator, SendsOnlyOnceItHasItsState) {
  Town town(2, 1);
  town[0].send(1'000);
  town[2].send(100);
  town[2].come();
  ASSERT_TRUE(town.until_view_of({0, 1, 2}, 1'100)) << town.text();
  EXPECT_EQ(town[2].loads, 1U);
  EXPECT_FALSE(town[2].sent_without_state);
}

TEST(JoiningInSimulator, TakesSeveralAtOnce) {
  Town town(2, 5);
  town[1].send(10);
  ASSERT_TRUE(town.until_view_of({0, 1}, 10));
  for (Rank node = 2; node < 7; ++node) town[node].come();
  ASSERT_TRUE(town.until([&] {
    return std::ranges::all_of(town.citizens, [](const auto& citizen) {
      return citizen->group && citizen->group->view().members.size() == 7 &&
             citizen->history.size() == 10;
    });
  })) << town.text();
  EXPECT_LT(town[0].group->view().number, 7U);
}

TEST(JoiningInSimulator, FoundsAGroupFromOneMember) {
  Town town(1, 2);
  town[0].send(5);
  town[1].come();
  ASSERT_TRUE(town.until_view_of({0, 1}, 5));
  town[2].come();
  ASSERT_TRUE(town.until_view_of({0, 1, 2}, 5)) << town.text();
  town.world.crash(0);  // the only one of the beginning
  ASSERT_TRUE(town.until_view_of({1, 2}, 5));
  town[2].send(3);
  ASSERT_TRUE(town.until_view_of({1, 2}, 8));
}

TEST(JoiningInSimulator, LetsWhoCameLeaveAgain) {
  Town town(2, 1);
  town[2].come();
  ASSERT_TRUE(town.until_view_of({0, 1, 2}));
  town[2].group->leave();
  ASSERT_TRUE(town.until([&] { return town[2].group->ended(); }));
  ASSERT_TRUE(town.until_view_of({0, 1}));
  town[0].send(3);
  ASSERT_TRUE(town.until_view_of({0, 1}, 3));
}

TEST(JoiningInSimulator, OutlastsTheLeaderAtAnyMoment) {
  for (std::uint64_t moment_ns = 1'000; moment_ns < 400'000; moment_ns += 7'000) {
    Town town(3, 1, moment_ns);
    town[0].send(20);
    ASSERT_TRUE(town.until_view_of({0, 1, 2}, 20));
    town[3].come();
    town.world.run_for(moment_ns);
    town.world.crash(0);
    ASSERT_TRUE(town.until_view_of({1, 2, 3}, 20)) << "crash after " << moment_ns << " ns\n"
                                                   << town.text();
    EXPECT_EQ(town[3].loads, 1U);
  }
}

TEST(JoiningInSimulator, LeavesTheGroupAsItIsIfTheOneWhoComesDiesAtAnyMoment) {
  for (std::uint64_t moment_ns = 1'000; moment_ns < 400'000; moment_ns += 7'000) {
    Town town(3, 1, moment_ns);
    ASSERT_TRUE(town.until_view_of({0, 1, 2}));
    town[3].come();
    town.world.run_for(moment_ns);
    town.world.crash(3);
    town[1].send(20);
    town.world.run_for(5'000'000);
    ASSERT_TRUE(town.until_view_of({0, 1, 2}, 20)) << "crash after " << moment_ns << " ns\n"
                                                   << town.text();
  }
}

TEST(JoiningInSimulator, RefusesWhoDeclaresOtherSubgroups) {
  Town town(2, 1);
  GroupOptions other = town[2].group_options();
  other.subgroups.push_back({.name = "more"});
  town[2].come(std::move(other));
  ASSERT_TRUE(town.until([&] { return !town[2].error.empty(); }));
  EXPECT_TRUE(contains(town[2].error,
                       "group 'sim' refuses the member 'node2': it declares other "
                       "subgroups"))
      << town[2].error;
}

TEST(JoiningInSimulator, GivesUpWhereThereIsNoGroup) {
  Town town(1, 1);
  town.world.crash(0);
  town[1].come();
  ASSERT_TRUE(town.until([&] { return !town[1].error.empty(); }, 2'000'000'000));
  EXPECT_TRUE(contains(town[1].error, "could not come in within 1000 ms")) << town[1].error;
}

/// Others than GroupEntry may knock, too.
TEST(JoiningInSimulator, RefusesWhoHasANameThatNoMemberCanHave) {
  Town town(1, 1);
  const auto place = town.world.meeting_place(1, "sim");
  const auto entry = place->knock();
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<group::Mail> mail;
  std::string answer;
  town.world.attach(1, [&]() -> std::size_t {
    if (fabric == nullptr) {
      fabric = entry->poll();
      if (fabric == nullptr) return 0;
      mail = std::make_unique<group::Mail>(*fabric);
      mail->send(0, group::encode({.kind = group::Letter::Kind::hello, .name = "no/name"}));
    }
    return fabric->poll() + mail->poll([&](Rank, std::span<const std::byte> bytes) {
      if (const auto letter = group::decode(bytes)) answer = letter->text;
    });
  });
  ASSERT_TRUE(town.until([&] { return !answer.empty(); }));
  EXPECT_TRUE(contains(answer, "'no/name'")) << answer;
}

TEST(Joining, TellsWhyTheDoorIsClosed) {
  struct Closed final : MeetingPlace {
    const std::string& group() const noexcept override { return name; }
    std::unique_ptr<Formation> form(const std::string&, const std::vector<std::string>&,
                                    const std::string&, const std::string&) override {
      throw Error("not here");
    }
    std::unique_ptr<Formation> open() override {
      if (++attempts <= 2) throw Error("the lock is stuck");
      return inner->open();
    }
    std::unique_ptr<Formation> knock() override { throw Error("not here"); }
    std::uint64_t now_ns() const override { return inner->now_ns(); }
    std::string name = "sim";
    std::shared_ptr<MeetingPlace> inner;
    int attempts = 0;
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  const auto place = std::make_shared<Closed>();
  place->inner = world.meeting_place(0, "sim");
  Group group(world.fabric(0), {.subgroups = {{.name = "log"}}, .meeting_place = place});
  Multicast log(group, "log");
  world.attach(0, [&] { return group.poll(); });
  ASSERT_TRUE(world.run_until([&] { return place->attempts == 1; }, 1'000'000'000));
  EXPECT_EQ(group.why_closed(), "the lock is stuck");
  ASSERT_TRUE(world.run_until([&] { return place->attempts == 3; }, 1'000'000'000));
  EXPECT_EQ(group.why_closed(), "");
}

TEST(Joining, NeedsAMeetingPlace) {
  const std::string text = what_is_thrown_by([] { GroupEntry("x", {}); });
  EXPECT_TRUE(contains(text, "give that of the group, such as shm::meeting_place()")) << text;
}

}  // namespace
}  // namespace dunlin
