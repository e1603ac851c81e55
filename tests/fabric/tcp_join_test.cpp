#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/fabric/tcp.hpp>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::what_is_thrown_by;

tcp::JoinOptions on_this_host(const std::string& group, std::uint32_t members) {
  return {.group = group,
          .members = members,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it"};
}

/// Polls, because a member must, until its parent lets it go or dies.
Process polling_member(const tcp::JoinOptions& options) {
  return Process([options](Parent& parent) {
    const auto fabric = tcp::join(options);
    parent.send_line("in");
    while (!fabric->failed(0)) poll_politely(*fabric);
    return 0;
  });
}

TEST(TcpJoin, SaysWhatThereIsIfTheDeviceOrTheAddressIsNot) {
  tcp::JoinOptions options = on_this_host(fresh_group(), 1);
  const auto refusal = [&] {
    return what_is_thrown_by([&] { static_cast<void>(tcp::join(options)); });
  };
  options.device = "eth77";
  EXPECT_TRUE(contains(refusal(), "'eth77'"));
  for (const std::string& network : tcp::networks()) EXPECT_TRUE(contains(refusal(), network));
  options.device = {};
  options.address = "203.0.113.7";  // an example's; nobody has it
  EXPECT_TRUE(contains(refusal(), "203.0.113.7"));
  options.device = "lo";
  EXPECT_TRUE(contains(refusal(), "does not have the address 203.0.113.7"));
  options.address = {};
  options.provider = "carrier-pigeon";
  EXPECT_TRUE(contains(refusal(), "no providers"));
}

TEST(TcpJoin, ListensOnTheDeviceThatIsAskedFor) {
  tcp::JoinOptions options = on_this_host(fresh_group(), 1);
  options.device = "lo";
  EXPECT_TRUE(contains(tcp::join(options)->description(), "on lo"));
}

TEST(TcpJoin, StepByStepNamesTheMissingWhenTheTimeIsUp) {
  tcp::JoinOptions options = on_this_host(fresh_group(), 2);
  options.timeout_ms = 20;
  const auto pending_join = tcp::begin_join(options);
  const auto poll = [&] {
    while (!pending_join->poll()) std::this_thread::yield();
  };
  EXPECT_TRUE(contains(what_is_thrown_by(poll), "did not meet within 20 ms"));
  EXPECT_TRUE(contains(what_is_thrown_by(poll), "is over"));
}

TEST(TcpJoin, StepByStepMeetsThoseWhoJoin) {
  const auto options = on_this_host(fresh_group(), 2);
  std::unique_ptr<Fabric> blocking;
  std::thread thread([&] { blocking = tcp::join(options); });
  const auto pending_join = tcp::begin_join(options);
  std::unique_ptr<Fabric> stepwise;
  while (!(stepwise = pending_join->poll())) std::this_thread::yield();
  thread.join();
  EXPECT_NE(stepwise->rank(), blocking->rank());
  EXPECT_EQ(stepwise->description(), blocking->description());
}

TEST(TcpJoin, SaysWhichNetworkItChoseAndWhy) {
  const auto options = on_this_host(fresh_group(), 1);
  const auto fabric = tcp::join(options);
  const std::string text = fabric->description();
  EXPECT_TRUE(contains(text, options.rendezvous));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(fabric->kind(), "tcp");
}

TEST(TcpJoin, RefusesGroupsThatCannotBe) {
  EXPECT_TRUE(
      contains(what_is_thrown_by([] { static_cast<void>(tcp::join(on_this_host("no group", 1))); }),
               "no group"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([] { static_cast<void>(tcp::join(on_this_host(fresh_group(), 0))); }),
      "how many"));
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(
                             tcp::join(on_this_host(fresh_group(), kMaxStreamMembers + 1)));
                       }),
                       "kMaxStreamMembers"));
}

TEST(TcpJoin, GivesNamedMembersTheRanksOfTheirNames) {
  auto options = on_this_host(fresh_group(), 0);
  options.names = {"north", "south"};
  options.name = "south";
  std::jthread other([options]() mutable {
    options.name = "north";
    const auto north = tcp::join(options);
    EXPECT_EQ(north->rank(), 0U);
    while (!north->failed(1)) poll_politely(*north);
    EXPECT_TRUE(contains(north->failure_text(1), "'south'"));
  });
  const auto south = tcp::join(options);
  EXPECT_EQ(south->rank(), 1U);
  EXPECT_EQ(south->member_name(0), "north");
}

/// Whose peers see by it who has come.
Region box_of(Fabric& fabric) {
  Region box = fabric.allocate({.name = "box", .bytes = 64});
  fabric.announce(box);
  return box;
}

TEST(TcpDeath, OfAStoppedProcessIsNoticedByItsSilence) {
  auto options = on_this_host(fresh_group(), 2);
  options.rank = 1;
  const Process victim([options](Parent&) {
    const auto fabric = tcp::join(options);
    const Region box = box_of(*fabric);
    while (!fabric->failed(0)) poll_politely(*fabric);
    return 0;
  });
  options.rank = 0;
  options.silence_timeout_ms = 500;
  const auto fabric = tcp::join(options);
  const Region box = box_of(*fabric);
  // Who has not said a word yet has all the time that joining may take.
  while (!fabric->connected(1, box.id())) poll_politely(*fabric);
  victim.signal(SIGSTOP);
  while (!fabric->failed(1)) poll_politely(*fabric);
  EXPECT_TRUE(contains(fabric->failure_text(1), "500 ms"));
  victim.signal(SIGCONT);
}

TEST(TcpDeath, OfAKilledProcessIsNoticedByASleeperWithoutASilenceTimeout) {
  auto options = on_this_host(fresh_group(), 2);
  options.rank = 1;
  Process victim = polling_member(options);
  options.rank = 0;
  const auto fabric = tcp::join(options);
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

TEST(TcpJoin, AForkedChildThatUnwindsSpeaksForNobody) {
  const auto options = on_this_host(fresh_group(), 2);
  Process peer([&](Parent&) {
    const auto fabric = tcp::join(options);
    const Region box = box_of(*fabric);
    while (!fabric->failed(1 - fabric->rank())) poll_politely(*fabric);
    return 0;
  });
  auto fabric = tcp::join(options);
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

}  // namespace
}  // namespace dunlin
