#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// What every fabric between hosts does about joining and dying. `TypeParam` has its name.
namespace dunlin::test {

inline JoinOptions on_this_host(const std::string& network, const std::string& group,
                                std::uint32_t members) {
  return {.network = network,
          .group = group,
          .members = members,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it"};
}

/// Whose peers see by it who has come.
inline Region box_of(Fabric& fabric) {
  Region box = fabric.allocate({.name = "box", .bytes = 64});
  fabric.announce(box);
  return box;
}

template <typename Network>
class NetworkJoin : public testing::Test {};
TYPED_TEST_SUITE_P(NetworkJoin);

TYPED_TEST_P(NetworkJoin, StepByStepNamesTheMissingWhenTheTimeIsUp) {
  JoinOptions options = on_this_host(TypeParam::kName, fresh_group(), 2);
  options.timeout_ms = 20;
  const auto pending_join = begin_join(options);
  const auto poll = [&] {
    while (!pending_join->poll()) std::this_thread::yield();
  };
  EXPECT_TRUE(contains(what_is_thrown_by(poll), "did not meet within 20 ms"));
  EXPECT_TRUE(contains(what_is_thrown_by(poll), "is over"));
}

TYPED_TEST_P(NetworkJoin, StepByStepMeetsThoseWhoJoin) {
  const auto options = on_this_host(TypeParam::kName, fresh_group(), 2);
  std::unique_ptr<Fabric> blocking;
  std::thread thread([&] { blocking = join(options); });
  const auto pending_join = begin_join(options);
  std::unique_ptr<Fabric> stepwise;
  while (!(stepwise = pending_join->poll())) std::this_thread::yield();
  thread.join();
  EXPECT_NE(stepwise->rank(), blocking->rank());
  EXPECT_EQ(stepwise->description(), blocking->description());
}

TYPED_TEST_P(NetworkJoin, SaysWhichNetworkItChoseAndWhy) {
  const auto options = on_this_host(TypeParam::kName, fresh_group(), 1);
  const auto fabric = join(options);
  const std::string text = fabric->description();
  EXPECT_TRUE(contains(text, options.rendezvous));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(fabric->kind(), TypeParam::kName);
}

TYPED_TEST_P(NetworkJoin, RefusesGroupsThatCannotBe) {
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(join(on_this_host(TypeParam::kName, "no group", 1)));
                       }),
                       "no group"));
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(join(on_this_host(TypeParam::kName, fresh_group(), 0)));
                       }),
                       "how many"));
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(join(
                             on_this_host(TypeParam::kName, fresh_group(), kMaxStreamMembers + 1)));
                       }),
                       "kMaxStreamMembers"));
}

TYPED_TEST_P(NetworkJoin, GivesNamedMembersTheRanksOfTheirNames) {
  auto options = on_this_host(TypeParam::kName, fresh_group(), 0);
  options.names = {"north", "south"};
  options.name = "south";
  std::jthread other([options]() mutable {
    options.name = "north";
    const auto north = join(options);
    EXPECT_EQ(north->rank(), 0U);
    while (!north->failed(1)) poll_politely(*north);
    EXPECT_TRUE(contains(north->failure_text(1), "'south'"));
  });
  const auto south = join(options);
  EXPECT_EQ(south->rank(), 1U);
  EXPECT_EQ(south->member_name(0), "north");
}

TYPED_TEST_P(NetworkJoin, AForkedChildThatUnwindsSpeaksForNobody) {
  const auto options = on_this_host(TypeParam::kName, fresh_group(), 2);
  Process peer([&](Parent&) {
    const auto fabric = join(options);
    const Region box = box_of(*fabric);
    while (!fabric->failed(1 - fabric->rank())) poll_politely(*fabric);
    return 0;
  });
  auto fabric = join(options);
  const Rank other = 1 - fabric->rank();
  Region box = box_of(*fabric);
  while (!fabric->connected(other, box.id())) poll_politely(*fabric);
  Process child([&](Parent&) {
    box = Region();
    fabric.reset();
    return 0;
  });
  EXPECT_EQ(child.exit_code(), 0);
  for (int i = 0; i < 3; ++i) {
    Completion added;
    ASSERT_TRUE(fabric->post(fetch_add(other, box.id(), 0, 1, nullptr).notify(added)).all());
    while (!added.finished()) poll_politely(*fabric);
    EXPECT_FALSE(added.failed());
  }
  box = Region();
  fabric.reset();
  EXPECT_EQ(peer.exit_code(), 0);
}

REGISTER_TYPED_TEST_SUITE_P(NetworkJoin, StepByStepNamesTheMissingWhenTheTimeIsUp,
                            StepByStepMeetsThoseWhoJoin, SaysWhichNetworkItChoseAndWhy,
                            RefusesGroupsThatCannotBe, GivesNamedMembersTheRanksOfTheirNames,
                            AForkedChildThatUnwindsSpeaksForNobody);

template <typename Network>
class NetworkDeath : public testing::Test {};
TYPED_TEST_SUITE_P(NetworkDeath);

TYPED_TEST_P(NetworkDeath, OfAStoppedProcessIsNoticedByItsSilence) {
  auto options = on_this_host(TypeParam::kName, fresh_group(), 2);
  options.rank = 1;
  const Process victim([options](Parent&) {
    const auto fabric = join(options);
    const Region box = box_of(*fabric);
    while (!fabric->failed(0)) poll_politely(*fabric);
    return 0;
  });
  options.rank = 0;
  options.silence_timeout_ms = 500;
  const auto fabric = join(options);
  const Region box = box_of(*fabric);
  // Who has not said a word yet has all the time that joining may take.
  while (!fabric->connected(1, box.id())) poll_politely(*fabric);
  victim.signal(SIGSTOP);
  while (!fabric->failed(1)) poll_politely(*fabric);
  EXPECT_TRUE(contains(fabric->failure_text(1), "500 ms"));
  victim.signal(SIGCONT);
}

TYPED_TEST_P(NetworkDeath, OfAKilledProcessIsNoticedByASleeperWithoutASilenceTimeout) {
  auto options = on_this_host(TypeParam::kName, fresh_group(), 2);
  options.rank = 1;
  Process victim([options](Parent& parent) {
    const auto fabric = join(options);
    parent.send_line("in");
    while (!fabric->failed(0)) poll_politely(*fabric);
    return 0;
  });
  options.rank = 0;
  const auto fabric = join(options);
  EXPECT_EQ(victim.receive_line(), "in");
  victim.kill();
  while (!fabric->failed(1)) {
    fabric->prepare_sleep();
    if (fabric->poll() == 0 && !fabric->failed(1)) fabric->sleep(60'000'000'000);
    fabric->cancel_sleep();
    fabric->poll();
  }
  EXPECT_TRUE(contains(fabric->failure_text(1), "connection"));
}

REGISTER_TYPED_TEST_SUITE_P(NetworkDeath, OfAStoppedProcessIsNoticedByItsSilence,
                            OfAKilledProcessIsNoticedByASleeperWithoutASilenceTimeout);

}  // namespace dunlin::test
