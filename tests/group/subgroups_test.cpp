#include "group/subgroups.hpp"

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "support/errors.hpp"
#include "turns.hpp"

namespace dunlin::group {
namespace {

using test::contains;
using test::what_is_thrown_by;

View view_of(std::vector<std::string> members, std::uint32_t me) {
  return {.number = 3, .members = std::move(members), .me = me, .departed = {}};
}

TEST(Subgroups, HaveThoseOfTheirMembersThatAreInTheView) {
  const Subgroups all({{.name = "all"},
                       {.name = "some", .members = {"a", "c", "x"}, .senders = {"c"}},
                       {.name = "none", .members = {"x"}},
                       {.name = "fed", .senders = {"b"}}});
  const auto places = all.in_view(view_of({"a", "b", "c"}, 1), {4, 6, 7}, {});
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[0].subgroup.members, (std::vector<Rank>{4, 6, 7}));
  EXPECT_EQ(places[0].subgroup.senders, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(places[0].subgroup.view, 3U);
  EXPECT_TRUE(places[0].ours);
  EXPECT_EQ(places[1].subgroup.members, (std::vector<Rank>{4, 7}));
  EXPECT_EQ(places[1].subgroup.senders, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(places[1].first_count, 3U);
  EXPECT_FALSE(places[1].ours);
  EXPECT_TRUE(places[2].subgroup.members.empty());
  EXPECT_EQ(places[3].first_count, 4U);
  EXPECT_EQ(Subgroups::counts(places), 5U);
}

TEST(Subgroups, AreRefusedWithASentence) {
  const auto refusal = [](std::vector<SubgroupSpec> specs) {
    return what_is_thrown_by([&] { Subgroups refused(std::move(specs)); });
  };
  EXPECT_TRUE(contains(refusal({{.name = "a b"}}), "'a b'"));
  EXPECT_TRUE(contains(refusal({{.name = "a"}, {.name = "a"}}), "two subgroups 'a'"));
  EXPECT_TRUE(contains(refusal({{.name = "a", .members = {"x", "x"}}}), "listed twice"));
  EXPECT_TRUE(contains(refusal({{.name = "a", .members = {"x"}, .senders = {"y"}}}), "sender 'y'"));
  EXPECT_TRUE(contains(refusal(std::vector<SubgroupSpec>(kMaxSubgroups + 1)), "kMaxSubgroups"));
}

struct Idle final : SubgroupParticipant {
  void begin(Fabric&, const Subgroup&) override {}
  std::size_t poll() override { return 0; }
  void wedge() noexcept override {}
  std::span<const std::uint64_t> received() const noexcept override { return {}; }
  void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
};

TEST(Subgroups, ThatDifferAreRefusedByTheOthers) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Idle a, b;
  Group here(world.fabric(0), {.subgroups = {{.name = "a"}}});
  Group there(world.fabric(1), {.subgroups = {{.name = "b"}}});
  here.attach("a", a);
  there.attach("b", b);
  world.attach(0, [&] { return here.poll(); });
  world.attach(1, [&] { return there.poll(); });
  world.run_for(1'000'000);
  const std::string why = what_is_thrown_by([&] { there.check(); });
  EXPECT_TRUE(contains(why, "members must declare the same subgroups: ")) << why;
  EXPECT_TRUE(contains(why, "''a': members (all)' there")) << why;
  EXPECT_TRUE(contains(why, "''b': members (all)' here")) << why;
}

/// Longer than what can be announced, and alike in its beginning.
TEST(Subgroups, ThatDifferSomewhereInLongListsAreToldApart) {
  std::vector<SubgroupSpec> specs;
  for (int i = 0; i < 20; ++i) {
    specs.push_back({.name = "subgroup" + std::to_string(i)});
    for (int member = 0; member < 40; ++member)
      specs.back().members.push_back("a_member_with_a_name_" + std::to_string(member));
  }
  const std::string here = group::Subgroups(specs).description(true);
  specs.back().members.pop_back();
  const std::string there = group::Subgroups(specs).description(true);
  EXPECT_LE(here.size(), kMaxLayoutTextBytes);
  EXPECT_NE(here, there);
  EXPECT_TRUE(contains(here, "'subgroup19': members 40 (hash ")) << here;
  EXPECT_TRUE(contains(there, "'subgroup19': members 39 (hash ")) << there;
}

/// It stopped, perhaps, before this one could read what it declares.
TEST(Subgroups, MayBeWhatDiffersWhereNothingWasHeardOfAMember) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Idle participant;
  Group group(world.fabric(1), {.subgroups = {{.name = "a"}}});
  group.attach("a", participant);
  world.attach(1, [&] { return group.poll(); });
  world.crash(0);
  ASSERT_TRUE(world.run_until([&] { return group.ended(); }, 1'000'000'000));
  EXPECT_TRUE(contains(group.why_ended(), "; of 'node0' nothing was heard: see there why"))
      << group.why_ended();
}

TEST(Subgroups, OfWhoHasBeenHeardDoNotDiffer) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Group one(world.fabric(0), {});
  Group other(world.fabric(1), {});
  world.attach(0, [&] { return one.poll(); });
  world.attach(1, [&] { return other.poll(); });
  world.run_for(1'000'000);
  world.crash(0);
  ASSERT_TRUE(world.run_until([&] { return other.ended(); }, 1'000'000'000));
  EXPECT_TRUE(contains(other.why_ended(), "start this member anew")) << other.why_ended();
  EXPECT_FALSE(contains(other.why_ended(), "subgroups")) << other.why_ended();
}

TEST(Subgroups, ThatRestArePolledSeldomOnlyWhileOthersAreBusy) {
  struct Part final : SubgroupParticipant {
    std::size_t found = 0;  // by each poll
    bool resting = false;
    std::uint32_t polls = 0;
    void begin(Fabric&, const Subgroup&) override {}
    std::size_t poll() override {
      ++polls;
      return found;
    }
    bool rests() const noexcept override { return resting; }
    void wedge() noexcept override {}
    std::span<const std::uint64_t> received() const noexcept override { return {}; }
    void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "busy"}, {.name = "other"}}});
  Part busy, other;
  group.attach("busy", busy);
  group.attach("other", other);
  const auto polls_of_other = [&] {
    other.polls = 0;
    for (int i = 0; i < 80; ++i) group.poll();
    return other.polls;
  };
  other.resting = true;
  EXPECT_GE(polls_of_other(), 78U);
  busy.found = 1;
  EXPECT_GE(polls_of_other(), 9U);
  EXPECT_LE(polls_of_other(), 12U);
  other.resting = false;
  EXPECT_EQ(polls_of_other(), 80U);
  // Once the busy one is so no more, the other has its turn, and then each poll looks at it.
  other.resting = true;
  polls_of_other();
  busy.found = 0;
  EXPECT_GE(polls_of_other(), 72U);
  EXPECT_EQ(polls_of_other(), 80U);
}

/// What one throws keeps the others from nothing.
TEST(Subgroups, ThatRestArePolledAlsoWhileOneThrows) {
  struct Part final : SubgroupParticipant {
    bool throws = false;
    bool resting = true;
    std::uint32_t polls = 0;
    void begin(Fabric&, const Subgroup&) override {}
    std::size_t poll() override {
      ++polls;
      if (throws) throw Error("its upcall failed");
      return 0;
    }
    bool rests() const noexcept override { return resting; }
    void wedge() noexcept override {}
    std::span<const std::uint64_t> received() const noexcept override { return {}; }
    void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
  };
  sim::World world(sim::profile("ideal"), 1, 1);
  Group group(world.fabric(0), {.subgroups = {{.name = "bad"}, {.name = "other"}, {.name = "b"}}});
  Part bad, other, last;
  group.attach("bad", bad);
  group.attach("other", other);
  group.attach("b", last);
  while (group.poll() > 0) continue;
  bad.throws = true;
  bad.resting = false;
  other.polls = last.polls = 0;
  for (int i = 0; i < 80; ++i)
    EXPECT_EQ(what_is_thrown_by([&] { group.poll(); }), "its upcall failed");
  EXPECT_GE(other.polls, 80U / Turns::kLeastRest);
  EXPECT_GE(last.polls, 80U / Turns::kLeastRest);
  bad.throws = false;
  EXPECT_EQ(what_is_thrown_by([&] { group.poll(); }), "nothing");
}

TEST(Subgroups, CanBeAttachedToOnce) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Idle participant;
  Group group(world.fabric(0), {.subgroups = {{.name = "a"}, {.name = "b"}}});
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { group.attach("c", participant); }), "was not declared"));
  group.attach("a", participant);
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { group.attach("a", participant); }), "has a participant"));
  EXPECT_THROW((void)group.poll(), Error) << "'b' has none";
  EXPECT_TRUE(contains(what_is_thrown_by([&] { group.attach("b", participant); }),
                       "before the first poll"));
}

}  // namespace
}  // namespace dunlin::group
