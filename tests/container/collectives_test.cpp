#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include <dunlin/join.hpp>

#include "container/clusters.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"
#include "support/published.hpp"
#include "support/rounds.hpp"

namespace dunlin {
namespace {

using container::CollectiveOutcome;
using remote::Status;
using test::contains;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

/// x -> factor * x + term: to combine two is associative, and not commutative.
struct Affine {
  std::uint64_t factor = 1, term = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};
constexpr auto kInOrder = [](const Affine& first, const Affine& then) {
  return Affine{first.factor * then.factor, then.factor * first.term + then.term};
};
Affine affine_of(std::uint64_t i) { return {2 * i + 3, i * i + 1}; }

struct MembersThatMeet : test::OnContainers {
  std::vector<std::unique_ptr<Collectives>> teams;

  void start_teams(std::uint32_t members, const CollectivesOptions& options) {
    start(members);
    teams = make<Collectives>(options);
  }
  /// Begins a call at each member, `begin(rank)`, and expects that all end well.
  template <class Begin>
  auto all_of(const Begin& begin) {
    std::vector<decltype(begin(Rank{0}))> calls;
    for (Rank rank = 0; rank < teams.size(); ++rank) calls.push_back(begin(rank));
    for (auto& call : calls) EXPECT_EQ(cluster->end_of(call), Status::ok);
    return calls;
  }
};

DUNLIN_RUN_ON(test::container_cases({Style::one_sided}), MembersThatMeet);

TEST_P(MembersThatMeet, CombineTheValuesOfAllInOneOrder) {
  for (std::uint32_t members = 1; members <= 9; ++members) {
    start_teams(members, {.name = "team"});
    Affine all;
    for (Rank rank = 0; rank < members; ++rank) all = kInOrder(all, affine_of(rank));
    const auto one =
        all_of([&](Rank rank) { return teams[rank]->all_reduce(affine_of(rank), kInOrder); });
    for (const auto& call : one) EXPECT_EQ(call.result().value(), all) << members;
    std::vector<std::array<Affine, 60>> many(members);  // more than a line
    for (Rank rank = 0; rank < members; ++rank) many[rank].fill(affine_of(rank));
    all_of([&](Rank rank) { return teams[rank]->all_reduce(std::span(many[rank]), kInOrder); });
    for (const auto& values : many)
      for (const Affine& each : values) EXPECT_EQ(each, all) << members;
    teams.clear();
  }
}

TEST_P(MembersThatMeet, HaveTheSameSumToTheLastBit) {
  start_teams(7, {.name = "team"});
  const auto sums =
      all_of([&](Rank rank) { return teams[rank]->all_reduce(1.0 / (rank + 3), std::plus<>()); });
  for (const auto& call : sums) {
    const double sum = call.result().value();
    EXPECT_NEAR(sum, 1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6 + 1.0 / 7 + 1.0 / 8 + 1.0 / 9, 1e-9);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum),
              std::bit_cast<std::uint64_t>(sums.front().result().value()));
  }
}

TEST_P(MembersThatMeet, TakeAndGiveWhatARootHas) {
  for (std::uint32_t members = 1; members <= 9; ++members) {
    start_teams(members, {.name = "team"});
    for (Rank root = 0; root < members; ++root) {
      const auto one = all_of([&](Rank rank) {
        return teams[rank]->broadcast(root, rank == root ? 1'000 + root : 7U);
      });
      for (const auto& call : one) EXPECT_EQ(call.result().value(), 1'000 + root);
      std::vector<std::array<std::uint64_t, 100>> many(members);
      std::iota(many[root].begin(), many[root].end(), root);
      all_of([&](Rank rank) { return teams[rank]->broadcast(root, std::span(many[rank])); });
      for (const auto& values : many) EXPECT_EQ(values, many[root]) << members << " " << root;
    }
    teams.clear();
  }
}

TEST_P(MembersThatMeet, GatherInTheOrderOfTheSet) {
  for (std::uint32_t members = 1; members <= 9; ++members) {
    start_teams(members, {.name = "team"});
    std::vector<Affine> expected(members);
    for (Rank rank = 0; rank < members; ++rank) expected[rank] = affine_of(rank);
    for (Rank root = 0; root < members; ++root) {
      std::vector<Affine> gathered(members);
      all_of([&](Rank rank) {
        return teams[rank]->gather(root, affine_of(rank),
                                   rank == root ? std::span(gathered) : std::span<Affine>());
      });
      EXPECT_EQ(gathered, expected) << members << " " << root;
    }
    std::vector<std::vector<Affine>> everywhere(members, std::vector<Affine>(members));
    all_of([&](Rank rank) { return teams[rank]->all_gather(affine_of(rank), everywhere[rank]); });
    for (const auto& gathered : everywhere) EXPECT_EQ(gathered, expected) << members;
    teams.clear();
  }
}

/// CON-L1.
TEST_P(MembersThatMeet, LeaveABarrierOnceAllHaveComeToIt) {
  for (const std::uint32_t members : {2U, 5U}) {
    start_teams(members, {.name = "team", .bytes = 0});
    for (Rank last = 0; last < members; ++last) {
      std::vector<remote::Call<CollectiveOutcome>> calls;
      for (Rank rank = 0; rank < members; ++rank)
        calls.push_back(rank != last ? teams[rank]->barrier() : decltype(teams[0]->barrier())());
      cluster->pass(200);
      for (Rank rank = 0; rank < members; ++rank)
        EXPECT_EQ(calls[rank].finished(), rank == last) << rank;
      calls[last] = teams[last]->barrier();
      for (auto& call : calls) EXPECT_EQ(cluster->end_of(call), Status::ok);
    }
    teams.clear();
  }
}

/// CON-L3: a root that is ahead waits for its slowest child, and what it has sent stays.
TEST_P(MembersThatMeet, AreAheadByAFewCallsAtMost) {
  start_teams(3, {.name = "team"});
  for (const bool is_long : {false, true}) {
    const auto value_of = [&](std::uint64_t i) {
      std::array<std::uint64_t, 32> value;
      value.fill(i);
      return value;
    };
    const std::uint64_t most_calls = 3 * std::uint64_t{teams[1]->calls_ahead()} + 1;
    std::array<std::uint64_t, 32> given{};
    const auto broadcast = [&](Rank rank, std::array<std::uint64_t, 32>& value) {
      return teams[rank]->broadcast(1, std::span(value).first(is_long ? 32 : 1));
    };
    std::uint64_t ahead = 0;
    remote::Call<CollectiveOutcome> of_root;
    for (;;) {
      given = value_of(ahead);
      of_root = broadcast(1, given);
      cluster->pass(2'000);
      if (!of_root.finished()) break;
      EXPECT_EQ(of_root.status(), Status::ok);
      ASSERT_LT(++ahead, most_calls);
    }
    EXPECT_EQ(ahead, teams[1]->calls_ahead());
    for (std::uint64_t i = 0; i <= ahead; ++i)
      for (const Rank rank : {0U, 2U}) {
        std::array<std::uint64_t, 32> taken{};
        EXPECT_EQ(cluster->end_of(broadcast(rank, taken)), Status::ok);
        EXPECT_EQ(taken[0], i);
        EXPECT_EQ(taken[31], is_long ? i : 0U);
      }
    EXPECT_EQ(cluster->end_of(of_root), Status::ok);
    all_of([&](Rank rank) { return teams[rank]->barrier(); });  // and all are level again
  }
}

TEST_P(MembersThatMeet, MayBeSomeOfAllInAnyOrder) {
  start(4);
  const CollectivesOptions pair{.name = "some", .members = {3, 1}},
      rest{.name = "some", .members = {0, 2}};
  for (const Rank rank : {0U, 1U, 2U, 3U})
    teams.push_back(std::make_unique<Collectives>((*cluster)[rank], rank % 2 == 1 ? pair : rest));
  const auto first =
      all_of([&](Rank rank) { return teams[rank]->all_reduce(affine_of(rank), kInOrder); });
  for (const Rank rank : {1U, 3U})
    EXPECT_EQ(first[rank].result().value(), kInOrder(affine_of(3), affine_of(1)));
  for (const Rank rank : {0U, 2U})
    EXPECT_EQ(first[rank].result().value(), kInOrder(affine_of(0), affine_of(2)));
}

TEST_P(MembersThatMeet, WaitForOneThatMakesItsPartLate) {
  start(3);
  const CollectivesOptions options{.name = "team", .members = {0, 1, 2}};
  for (const Rank rank : {0U, 1U})
    teams.push_back(std::make_unique<Collectives>((*cluster)[rank], options));
  std::vector<remote::Call<CollectiveOutcome>> calls;
  for (const auto& team : teams) calls.push_back(team->barrier());
  cluster->pass(500);
  EXPECT_TRUE(contains(teams[1]->describe(),
                       "collectives 'team': 1 calls, the last of which waits for member 2"));
  EXPECT_TRUE(contains(teams[1]->describe(), "which has not made its part"));
  Collectives late((*cluster)[2], options);
  EXPECT_EQ(cluster->end_of(late.barrier()), Status::ok);
  for (auto& call : calls) EXPECT_EQ(cluster->end_of(call), Status::ok);
}

/// The end of one member's part is no end of a call that it has ended.
TEST_P(MembersThatMeet, EndACallAfterAnotherHasDestroyedItsPart) {
  for (int round = 0; round < 20; ++round) {
    start_teams(5, {.name = "team"});
    std::vector<remote::Call<CollectiveOutcome>> calls;
    for (const auto& team : teams) calls.push_back(team->barrier());
    const auto all_gone = [&] {
      bool all = true;
      for (Rank rank = 0; rank < 5; ++rank) {
        if (teams[rank] != nullptr && calls[rank].finished()) {
          EXPECT_EQ(calls[rank].status(), Status::ok);
          teams[rank] = nullptr;
        }
        all = all && teams[rank] == nullptr;
      }
      return all;
    };
    EXPECT_TRUE(cluster->until(all_gone));
    teams.clear();
  }
}

/// CON-L4.
TEST_P(MembersThatMeet, AllEndLostIfOneGivesACallUpOrDestroysItsPart) {
  for (const bool destroys : {false, true}) {
    start_teams(5, {.name = "team"});
    all_of([&](Rank rank) { return teams[rank]->barrier(); });
    std::vector<remote::Call<CollectiveOutcome>> calls;
    for (const Rank rank : {0U, 2U, 3U, 4U}) calls.push_back(teams[rank]->barrier());
    if (destroys) {
      teams[1] = nullptr;
    } else {
      auto given_up = teams[1]->broadcast(0, 7);
      EXPECT_FALSE(given_up.finished());
      given_up.abandon();
      EXPECT_EQ(teams[1]->barrier().status(), Status::lost);
      EXPECT_TRUE(contains(teams[1]->describe(), "this process has given up call 2"));
    }
    for (auto& call : calls) EXPECT_EQ(cluster->end_of(call), Status::lost);
    for (const Rank rank : {0U, 2U, 3U, 4U}) {
      EXPECT_EQ(teams[rank]->all_reduce(1, std::plus<>()).status(), Status::lost);
      EXPECT_TRUE(contains(teams[rank]->describe(), "has left the set; make a new one"));
    }
    teams.clear();  // first, so that the name is free
    teams = make<Collectives>(CollectivesOptions{.name = "team"});
    all_of([&](Rank rank) { return teams[rank]->barrier(); });
    teams.clear();
  }
}

TEST_P(MembersThatMeet, AreRefusedIfTheirOptionsOrCallsDiffer) {
  start(2);
  {
    Collectives small((*cluster)[0], {.name = "team", .members = {0, 1}, .bytes = 8});
    Collectives large((*cluster)[1], {.name = "team", .members = {0, 1}, .bytes = 16});
    auto one = small.barrier(), other = large.barrier();
    EXPECT_EQ(cluster->end_of(one), Status::refused);
    EXPECT_EQ(cluster->end_of(other), Status::refused);
    EXPECT_TRUE(contains(small.describe(), "'bytes' is '"));
  }
  teams = make<Collectives>(CollectivesOptions{.name = "calls"});
  auto sum = teams[0]->all_reduce(7, std::plus<>());
  auto of_other_size = teams[1]->all_reduce(std::uint64_t{7}, std::plus<>());
  EXPECT_EQ(cluster->end_of(sum), Status::refused);
  EXPECT_TRUE(contains(teams[0]->describe(), "member 1"));
  EXPECT_TRUE(contains(teams[0]->describe(), "has made another call as number 1"));
  EXPECT_EQ(cluster->end_of(of_other_size), Status::refused) << "both have sent before they wait";

  teams.clear();
  teams = make<Collectives>(CollectivesOptions{.name = "longer calls"});
  std::array<std::uint64_t, 9> values{};
  auto root = teams[0]->all_reduce(std::span(values).first<8>(), std::plus<>());
  auto child = teams[1]->all_reduce(std::span(values), std::plus<>());
  EXPECT_EQ(cluster->end_of(root), Status::refused);
  EXPECT_EQ(cluster->end_of(child), Status::lost) << "the root has sent nothing";
}

TEST_P(MembersThatMeet, CanMoveNoMoreThanTheOptionSays) {
  start_teams(2, {.name = "team", .bytes = 100});
  std::array<std::uint64_t, 13> many{};
  EXPECT_EQ(teams[0]->broadcast(0, std::span(many)).status(), Status::too_long);
  std::array<std::array<std::byte, 51>, 2> pieces{};
  EXPECT_EQ(teams[0]->gather(0, pieces[0], pieces).status(), Status::too_long);
  std::array<std::array<std::byte, 50>, 2> fitting{};
  all_of([&](Rank rank) { return teams[rank]->gather(0, fitting[rank], fitting); });
}

TEST(CollectivesMisused, ThrowErrorsThatSayWhatToDo) {
  test::SimContainers cluster(sim::profile("ib100"), 3);
  const auto error_of = [&](const CollectivesOptions& options) {
    return what_is_thrown_by([&] { const Collectives team(cluster[0], options); });
  };
  EXPECT_TRUE(contains(error_of({.name = ""}), "its name must have 1 to"));
  EXPECT_TRUE(contains(error_of({.name = "t", .members = {0, 3}}),
                       "collectives 't': there is no member 3, only 3 ranks"));
  EXPECT_TRUE(contains(error_of({.name = "t", .members = {0, 1, 0}}), "member 0 is named twice"));
  EXPECT_TRUE(contains(error_of({.name = "t", .members = {2, 1}}),
                       "this process, member 0, is not of the set"));
  EXPECT_TRUE(
      contains(error_of({.name = "t", .bytes = kMaxCollectiveBytes + 1}), "kMaxCollectiveBytes"));

  Collectives team(cluster[0], {.name = "t", .members = {0, 2}});
  EXPECT_TRUE(contains(error_of({.name = "t", .members = {0, 2}}), "has one of this name already"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(team.broadcast(1, 7)); }),
                       "the root, member 1, is not of the set"));
  std::array<int, 1> one{};
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(team.gather(0, 7, one)); }),
                       "a gather needs room for the 2 values of all members, not for 1"));
  const auto first = team.barrier();
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(team.barrier()); }),
                       "call 1 has not ended; one call of a set is made after the other"));
}

/// Each phase of a program makes its own containers; a member begins the next one while others are
/// still in the last barrier.
TEST(CollectivesInPhases, MeetAgainIfTheirContainersAreMadeAnew) {
  constexpr std::uint32_t kMembers = 3, kPhases = 50;
  sim::World world(sim::profile("ib100"), kMembers, 1);
  struct Phases {
    explicit Phases(Fabric& fabric) : member(fabric) {}
    test::GroupMember member;
    std::optional<Containers> containers;
    std::optional<Collectives> team;
    remote::Call<CollectiveOutcome> call;
    std::uint32_t begun = 0;
    std::size_t step() {
      if (!call.finished()) return 0;
      team.reset();
      containers.reset();
      if (begun == kPhases) return 0;
      ++begun;
      team.emplace(containers.emplace(member.progress), CollectivesOptions{.name = "team"});
      call = team->barrier();
      return 1;
    }
  };
  std::vector<std::unique_ptr<Phases>> all;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    Phases& one = *all.emplace_back(std::make_unique<Phases>(world.fabric(rank)));
    world.attach(rank, [&one] { return one.member.progress.poll() + one.step(); });
  }
  const bool ended = world.run_until(
      [&] {
        return std::ranges::all_of(all, [](const auto& one) {
          return one->begun == kPhases && !one->team && one->call.finished();
        });
      },
      1'000'000'000);
  EXPECT_TRUE(ended) << "CON-L4: a call hangs";
  for (Rank rank = 0; rank < kMembers; ++rank) world.detach_all(rank);
  for (const auto& one : all) {
    one->call.abandon();
    one->team.reset();
    one->containers.reset();
  }
}

/// A constructor that throws has made no set.
TEST(CollectivesInPhases, MeetAlsoIfOneHasTriedToMakeASetTwice) {
  test::SimContainers cluster(sim::profile("ib100"), 2);
  {
    Collectives first(cluster[0], {.name = "team"}), other(cluster[1], {.name = "team"});
    EXPECT_NE(what_is_thrown_by([&] { const Collectives again(cluster[0], {.name = "team"}); }),
              "");
  }
  Collectives second(cluster[0], {.name = "team"}), other(cluster[1], {.name = "team"});
  auto one = second.barrier(), two = other.barrier();
  EXPECT_EQ(cluster.end_of(one), Status::ok);
  EXPECT_EQ(cluster.end_of(two), Status::ok);
}

TEST(CollectivesOnShm, CountTheirCallsAndWakeAMemberThatSleeps) {
  test::RealContainers cluster(test::backend_of("Shm"), 2);
  std::array<std::optional<Collectives>, 2> teams;
  for (const Rank rank : {0U, 1U})
    teams.at(rank).emplace(cluster[rank], CollectivesOptions{.name = "team"});
  const auto sum = [&](Rank rank) { return teams.at(rank)->all_reduce(rank + 1, std::plus<>()); };
  for (int round = 0; round < 3; ++round) {
    auto asleep = sum(0);
    Fabric& fabric = cluster[0].fabric();
    do fabric.prepare_sleep();
    while (cluster[0].poll() != 0);
    pollfd bell{fabric.wait_descriptor(), POLLIN, 0};
    auto late = sum(1);
    if (round > 0) {  // at first, the regions have yet to be connected
      EXPECT_EQ(::poll(&bell, 1, 0), 1) << "a message rings";
    }
    fabric.cancel_sleep();
    EXPECT_EQ(cluster.end_of(asleep), Status::ok);
    EXPECT_EQ(cluster.end_of(late), Status::ok);
    EXPECT_EQ(late.result().value(), 3U);
  }
  const auto seen = [&](const std::string& name) {
    return test::counter_of(cluster[0].fabric(), "container." + name,
                            "container=team\nkind=collectives\n");
  };
  EXPECT_TRUE(cluster.until([&] { return seen("one_sided") == 3U && seen("capacity") == 2U; }));
}

TEST(CollectivesOfProcesses, MeetTenThousandTimesInStep) {
  constexpr std::uint32_t kMembers = 4;
  const std::uint32_t rounds = test::rounds(40'000);
  const std::string group = test::fresh_group();
  std::vector<std::unique_ptr<Process>> processes;
  for (Rank rank = 0; rank < kMembers; ++rank)
    processes.push_back(std::make_unique<Process>([&](Parent& parent) {
      const auto fabric = join({.group = group, .members = kMembers});
      Containers containers(*fabric);
      Collectives team(containers, {.name = "team"});
      Counter arrived(containers, {.name = "arrived"});
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (!arrived.add(1).outcome().ok() || !team.barrier().outcome().ok()) return 1;
        const auto all = arrived.read().outcome();
        if (!all.ok() || all.value() < round * kMembers || all.value() >= (round + 1) * kMembers)
          return 2;
        const auto sum = team.all_reduce(round, std::plus<>()).outcome();
        if (!sum.ok() || sum.value() != round * kMembers) return 3;
      }
      parent.send_line("done");
      static_cast<void>(parent.receive_line());  // that of a member that leaves is gone
      return 0;
    }));
  for (const auto& process : processes) EXPECT_EQ(process->receive_line(), "done");
  for (const auto& process : processes) process->send_line("leave");
  for (const auto& process : processes) EXPECT_EQ(process->exit_code(), 0);
}

TEST(CollectivesDeathTest, OutliveTheirCalls) {
  const auto destroy_during_a_call = [] {
    test::SimContainers cluster(sim::profile("ib100"), 2);
    std::optional<Collectives> team(std::in_place, cluster[0], CollectivesOptions{.name = "team"});
    const auto call = team->barrier();
    team.reset();
  };
  EXPECT_DEATH(destroy_during_a_call(), "a Collectives outlives its calls");
}

}  // namespace
}  // namespace dunlin
