#include <cstddef>
#include <functional>
#include <memory>

#include <sys/un.h>

#include "fabric/rendezvous_group.hpp"
#include "support/hosts.hpp"
#include "support/process.hpp"

/// Who does not fit, does not come or does not stay: what each of them is told, and that the others
/// meet.
namespace dunlin::rendezvous {
namespace {

using namespace test;
using dunlin::test::Hosts;
using dunlin::test::Parent;
using dunlin::test::Process;

/// A process that meets, and then ends.
Process member_process(const Options& options) {
  return Process([options](Parent& parent) {
    parent.send_line("in " + std::to_string(meet_with(options).rank));
    return 0;
  });
}

/// Somebody else at the address, until he goes. Says the same to whoever calls, and hangs up; or
/// says nothing, and does not.
class Impostor {
 public:
  Impostor(const std::string& address, std::vector<std::byte> answer) : answer_(std::move(answer)) {
    std::string fault;
    listener_ = claim(resolve(parse_address(address), fault)).listener;
    EXPECT_TRUE(listener_);
  }
  /// Returns when somebody was there.
  void serve_one() {
    Descriptor caller;
    while (!caller) {
      wait_for_news_of(listener_);
      caller = take_connection(listener_);
    }
    wait_for_news_of(caller);
    static_cast<void>(send(caller.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL));
  }
  void serve_until(const std::function<bool()>& done) {
    while (!done())
      if (Descriptor caller = take_connection(listener_))
        static_cast<void>(send(caller.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL));
  }
  void go() { listener_.close(); }

 private:
  Descriptor listener_;
  std::vector<std::byte> answer_;
};

/// What a member says in the end to whom the same is said again and again.
std::string fault_at(const std::string& address, std::vector<std::byte> answer) {
  Impostor impostor(address, std::move(answer));
  std::atomic<bool> done{false};
  std::thread serving([&] { impostor.serve_until([&] { return done.load(); }); });
  std::string fault = fault_of(counted(address, 2));
  done = true;
  serving.join();
  return fault;
}

std::vector<std::byte> of_version(std::uint8_t version) { return refusal_by({version, false}); }

// --- who does not fit ----------------------------------------------------------------------------

TEST(RendezvousFaults, WhoKnowsAnotherSecretIsToldAndTheOthersMeet) {
  const std::string address = fresh_address();
  MemberThread host(counted(address, 2));
  static_cast<void>(connect_to(address));  // so that there is a host
  Options wrong = counted(address, 2);
  wrong.secret = "not what all members know";
  EXPECT_TRUE(contains(fault_of(wrong), "knows another secret than this member"));
  static_cast<void>(meet_with(counted(address, 2)));
  static_cast<void>(host.roster());
}

TEST(RendezvousFaults, TheHostSaysWhoKnewAnotherSecret) {
  const std::string address = fresh_address();
  Options wrong = counted(address, 2);
  wrong.secret = "not what all members know";
  std::string fault;
  while (!contains(fault, "Turned away")) {  // until the other one has called
    Process other = member_process(wrong);
    fault = fault_of(hurried(counted(address, 2)));
  }
  EXPECT_TRUE(contains(fault, "does not know our secret"));
}

TEST(RendezvousFaults, TheHostSaysWhoSpeaksAnotherVersion) {
  // Version 1 began with a frame in clear text; its first 6 bytes are all that counts.
  const std::vector<std::byte> call = refusal_by({1, false});
  std::string fault;
  for (std::uint32_t ms = kSoonMs; !contains(fault, "Turned away"); ms *= 2) {
    Options options = counted(fresh_address(), 2);
    options.timeout_ms = ms;
    MemberThread host(options);
    const Descriptor joiner = connect_to(options.address);
    static_cast<void>(send(joiner.get(), call.data(), call.size(), MSG_NOSIGNAL));
    std::vector<std::byte> answer(16);
    wait_for_news_of(joiner);
    const ssize_t got = recv(joiner.get(), answer.data(), answer.size(), 0);
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    EXPECT_TRUE(answer.empty() || answer == refusal_by({kVersion, false}));
    fault = host.fault();
  }
  EXPECT_TRUE(contains(fault, "speaks version 1 of the protocol, and we 3")) << fault;
}

TEST(RendezvousFaults, OtherVersionsAreTold) {
  const std::string fault = fault_at(fresh_address(), of_version(7));
  EXPECT_TRUE(contains(fault, "speaks version 7 of the protocol, and this member version 3"));
}

TEST(RendezvousFaults, AnotherServiceIsTold) {
  const Bytes hello = bytes_of("SSH-2.0-OpenSSH_9.2p1\r\n");
  const std::string fault = fault_at(fresh_tcp_address(), {hello.begin(), hello.end()});
  EXPECT_TRUE(contains(fault, "does not speak the protocol of a rendezvous"));
}

/// A host that demands certificates says so in clear text, and so does one that has none.
TEST(RendezvousFaults, AHostWithCertificatesIsTold) {
  const std::string fault = fault_at(fresh_address(), refusal_by({kVersion, true}));
  EXPECT_TRUE(contains(fault, "demands a certificate, and we have none")) << fault;
}

/// Its alert is not one that a host of ours sends.
TEST(RendezvousFaults, AnotherServiceWithTlsIsTold) {
  std::vector<std::byte> alert;
  for (const int byte : {0x15, 3, 3, 0, 2, 2, 120}) alert.push_back(static_cast<std::byte>(byte));
  const std::string fault = fault_at(fresh_tcp_address(), alert);
  EXPECT_TRUE(contains(fault, "does not speak the protocol of a rendezvous")) << fault;
}

TEST(RendezvousFaults, ASilentServiceIsTold) {
  const std::string address = fresh_address();
  const Impostor silent(address, {});
  EXPECT_TRUE(contains(fault_of(hurried(counted(address, 2))), "does not answer"));
}

TEST(RendezvousFaults, AnImpostorWhoLeavesMakesRoomForTheHost) {
  const std::string address = fresh_address();
  Impostor impostor(address, of_version(7));
  MemberThread one(counted(address, 2)), two(counted(address, 2));
  impostor.serve_one();
  impostor.go();
  static_cast<void>(one.roster());
  static_cast<void>(two.roster());
}

/// What a member is told that comes to a host with these options; then the right ones meet.
std::string refusal(const Options& host_options, const Options& wrong, const Options& right) {
  MemberThread host(host_options);
  HandJoiner witness(right);
  EXPECT_TRUE(witness.come());
  std::string fault = fault_of(wrong);
  Options last = right;
  if (right.rank != kAnyRank) last.rank = right.rank + 1;
  MemberThread third(last);
  EXPECT_EQ(witness.stay(), JoinerHandshake::Outcome::met);
  static_cast<void>(third.roster());
  static_cast<void>(host.roster());
  return fault;
}

TEST(RendezvousFaults, MembersOfAnotherGroupAreTold) {
  const std::string address = fresh_address();
  const Options right = counted(address, 3);
  Options wrong = right;
  wrong.group = "herd";
  EXPECT_TRUE(contains(refusal(right, wrong, right), "is of group 'flock', and this member of"));
}

TEST(RendezvousFaults, WhoExpectsAnotherNumberIsTold) {
  const std::string address = fresh_address();
  const Options right = counted(address, 3);
  EXPECT_TRUE(contains(refusal(right, counted(address, 4), right),
                       "the host expects 3 members, and this member expects 4"));
}

TEST(RendezvousFaults, WhoJoinsByNameAmongCountedOnesIsTold) {
  const std::string address = fresh_address();
  const Options right = counted(address, 3);
  EXPECT_TRUE(contains(refusal(right, named(address, {"a", "b", "c"}, "b"), right), "by name"));
}

TEST(RendezvousFaults, WhoseRankIsTakenIsTold) {
  const std::string address = fresh_address();
  const std::string fault =
      refusal(ranked(address, 3, 0), ranked(address, 3, 1), ranked(address, 3, 1));
  EXPECT_TRUE(contains(fault, "rank 1 is taken by pid " + std::to_string(getpid())));
  EXPECT_TRUE(contains(fault, "said the host of the rendezvous at " + address));
}

TEST(RendezvousFaults, WhoseNameIsTakenIsTold) {
  const std::string address = fresh_address();
  const std::vector<std::string> names{"ada", "bob", "cyd"};
  MemberThread ada(named(address, names, "ada"));
  HandJoiner bob(named(address, names, "bob"));
  ASSERT_TRUE(bob.come());
  EXPECT_TRUE(contains(fault_of(named(address, names, "bob")), "'bob' (rank 1) is taken"));
  EXPECT_TRUE(contains(fault_of(named(address, {"ada", "eve", "cyd"}, "eve")),
                       "another list of member names than the host: ada, bob, cyd"));
  MemberThread cyd(named(address, names, "cyd"));
  EXPECT_EQ(bob.stay(), JoinerHandshake::Outcome::met);
  EXPECT_EQ(cyd.roster().rank, 2u);
}

TEST(RendezvousFaults, OneMoreThanThereArePlacesIsTold) {
  const std::string address = fresh_address();
  MemberThread host(counted(address, 2));
  HandJoiner second(counted(address, 2));
  ASSERT_TRUE(second.come());
  EXPECT_TRUE(contains(fault_of(counted(address, 2)), "all its 2 places are taken"));
  EXPECT_EQ(second.stay(), JoinerHandshake::Outcome::met);
}

// --- who does not come ---------------------------------------------------------------------------

TEST(RendezvousFaults, TheHostNamesWhoIsMissingAndWhereItWaited) {
  const std::string address = fresh_address();
  const std::string fault = fault_of(hurried(named(address, {"ada", "bob"}, "ada")));
  EXPECT_TRUE(contains(fault, "group 'flock' did not meet within 150 ms"));
  EXPECT_TRUE(contains(fault, "1 of 2 members have come; missing: 'bob' (rank 1)"));
  EXPECT_TRUE(contains(fault, "as the host of the rendezvous at " + address));
}

TEST(RendezvousFaults, TheHostSaysWhichAddressItBound) {
  const std::string address = fresh_tcp_address("localhost");
  EXPECT_TRUE(contains(fault_of(hurried(counted(address, 2))), address + " ("));
}

TEST(RendezvousFaults, AJoinerNamesWhoIsMissingAndWhereItWaited) {
  const std::string address = fresh_address();
  Process host = member_process(ranked(address, 4, 2));
  HandJoiner witness(ranked(address, 4, 0));
  ASSERT_TRUE(witness.come());
  Options joiner = hurried(ranked(address, 4, 1));
  std::string fault;
  for (; !contains(fault, "as a joiner at " + address); joiner.timeout_ms *= 2)  // until in time
    fault = fault_of(joiner);
  EXPECT_TRUE(contains(fault, "3 of 4 members have come; missing: rank 3"));
}

TEST(RendezvousFaults, AHostThatGivesUpTellsItsJoinersWhy) {
  std::string fault;
  while (!contains(fault, "its host gave up")) {  // until it was the host, and the joiner in time
    Options longer = ranked(fresh_address(), 3, 1);
    longer.timeout_ms = 3 * kSoonMs;
    MemberThread joiner(longer);
    static_cast<void>(fault_of(hurried(ranked(longer.address, 3, 0))));
    fault = joiner.fault();
  }
  EXPECT_TRUE(contains(fault, "2 of 3 members have come; missing: rank 2"));
}

TEST(RendezvousFaults, AJoinerThatCannotTakeItsPlaceRemembersWhyTheHostGaveUp) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(2);
  std::string fault;
  for (std::uint32_t ms = kSoonMs; ms < kLongMs && !contains(fault, "Before that"); ms *= 2) {
    std::thread host([&] {  // until the joiner was there in time, and tried again
      hosts.enter(0);
      Options options = ranked(Hosts::address(0) + ":7700", 3, 0);
      options.timeout_ms = ms;
      static_cast<void>(fault_of(options));
    });
    std::thread joiner([&] {
      hosts.enter(1);
      Options options = ranked(Hosts::address(0) + ":7700", 3, 1);
      options.timeout_ms = 2 * ms;
      fault = fault_of(options);
    });
    host.join();
    joiner.join();
  }
  EXPECT_TRUE(contains(fault, "nobody can be reached")) << fault;
  EXPECT_TRUE(contains(fault, "Before that, its host gave up: ")) << fault;
  EXPECT_TRUE(contains(fault, "2 of 3 members have come; missing: rank 2")) << fault;
}

TEST(RendezvousFaults, TellsWhatIsWrongWithAnAddressThatCannotBeReached) {
  const std::string fault = fault_of(hurried(counted("192.0.2.1:4711", 2)));  // nobody's: RFC 5737
  EXPECT_TRUE(contains(fault, "nobody can be reached at 192.0.2.1:4711"));
  EXPECT_TRUE(contains(fault, "cannot be bound here"));
}

/// The first attempt to connect fails at once: nothing is awaited.
TEST(RendezvousFaults, TellsThatWhoHoldsTheAddressDoesNotListen) {
  const std::string address = fresh_address(), name = address.substr(std::string("unix:").size());
  const Descriptor deaf(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un abstract{.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(abstract.sun_path + 1, name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(bind(deaf.get(), reinterpret_cast<sockaddr*>(&abstract), bytes), 0);
  const std::string fault = fault_of(hurried(counted(address, 2)));
  EXPECT_TRUE(contains(fault, "nobody can be reached at " + address)) << fault;
  EXPECT_TRUE(contains(fault, "Connection refused")) << fault;
}

TEST(RendezvousFaults, TellsWhatIsWrongWithANameThatCannotBeResolved) {
  const std::string name(70, 'x');  // too long for a name server to be asked
  const std::string fault = fault_of(hurried(counted(name + ".invalid:4711", 2)));
  EXPECT_TRUE(contains(fault, "could not be resolved"));
}

TEST(RendezvousFaults, RefusesAddressesThatMakeNoSense) {
  const auto at = [](const std::string& address) { return fault_of(hurried(counted(address, 1))); };
  EXPECT_TRUE(contains(at(""), "no port"));
  EXPECT_TRUE(contains(at("unix:"), "1 to 107 bytes"));
  EXPECT_TRUE(contains(at("unix:" + std::string(108, 'x')), "1 to 107 bytes"));
  EXPECT_TRUE(contains(at("localhost"), "no port"));
  EXPECT_TRUE(contains(at("localhost:"), "port ''"));
  EXPECT_TRUE(contains(at("localhost:http"), "port 'http'"));
  EXPECT_TRUE(contains(at("localhost:0"), "1 to 65535"));
  EXPECT_TRUE(contains(at("localhost:65536"), "1 to 65535"));
  EXPECT_TRUE(contains(at(":4711"), "no host"));
  EXPECT_TRUE(contains(at("::1:4711"), "brackets"));
  EXPECT_TRUE(contains(at("0.0.0.0:4711"), "each would be the host"));
  EXPECT_TRUE(contains(at("[::]:4711"), "each would be the host"));
}

TEST(RendezvousFaults, RefusesOptionsThatMakeNoSense) {
  const auto with = [](const std::function<void(Options&)>& change) {
    Options options = hurried(counted(fresh_address(), 2));
    change(options);
    return fault_of(options);
  };
  EXPECT_TRUE(contains(with([](Options& o) { o.secret = "short"; }), "kMinSecretBytes"));
  EXPECT_TRUE(contains(with([](Options& o) { o.group = "a/b"; }), "kMaxGroupNameBytes"));
  EXPECT_TRUE(contains(with([](Options& o) { o.members = 0; }), "0 members"));
  EXPECT_TRUE(contains(with([](Options& o) { o.members = kMaxMembers + 1; }), "kMaxMembers"));
  EXPECT_TRUE(contains(with([](Options& o) { o.rank = 2; }), "ranks are 0 to 1"));
  EXPECT_TRUE(contains(with([](Options& o) { o.name = "x"; }), "needs the list of all names"));
  EXPECT_TRUE(contains(with([](Options& o) { o.names = {"x", "y"}; }), "no member ''"));
  EXPECT_TRUE(contains(with([](Options& o) { o.names = {"x", "x"}; }), "twice"));
  EXPECT_TRUE(contains(with([](Options& o) { o.names = {"x "}; }), "member name"));
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(
                             meet(counted(fresh_address(), 1),
                                  std::vector<std::byte>(kMaxEndpointAddressBytes + 1)));
                       }),
                       "kMaxEndpointAddressBytes"));
}

TEST(RendezvousFaults, CanBeToldBeforehand) {
  EXPECT_EQ(what_is_thrown_by([] { check(counted("unix:nobody-is-there", 2)); }), "nothing");
  EXPECT_TRUE(contains(what_is_thrown_by([] { check(counted("localhost", 2)); }), "no port"));
  EXPECT_TRUE(contains(what_is_thrown_by([] { check(counted("unix:x", 0)); }), "0 members"));
}

TEST(RendezvousFaults, EndForAllIfAllMustFit) {
  const std::string address = fresh_address();
  const auto strict = [](Options options) {
    options.all_must_fit = true;
    return options;
  };
  MemberThread host(strict(ranked(address, 3, 0)));
  {
    HandJoiner joiner(ranked(address, 3, 1));
    ASSERT_TRUE(joiner.come());
    EXPECT_TRUE(contains(fault_of(strict(ranked(address, 4, 2))), "and this member expects 4"));
    EXPECT_TRUE(joiner.next_frame_of(FrameType::refuse).has_value());
  }
  EXPECT_TRUE(contains(host.fault(), "was refused: group 'flock': the host expects 3"));
}

TEST(RendezvousFaults, DoNotEndForAllBecauseOfAnotherGroup) {
  const std::string address = fresh_address();
  Options mine = ranked(address, 2, 0);
  mine.all_must_fit = true;
  Options other = mine;
  other.group = "shoal";
  MemberThread host(mine);
  {
    HandJoiner early(ranked(address, 2, 1), "early");
    ASSERT_TRUE(early.come());
    EXPECT_TRUE(contains(fault_of(other), "this member of 'shoal'"));
  }
  MemberThread joiner(ranked(address, 2, 1));
  EXPECT_EQ(host.roster().members.size(), 2u);
}

// --- who does not stay ---------------------------------------------------------------------------

TEST(RendezvousFaults, AJoinerThatDiesMakesRoomForASuccessor) {
  const std::string address = fresh_address();
  MemberThread host(ranked(address, 3, 0));
  for (int i = 0; i < 5; ++i) {
    HandJoiner doomed(ranked(address, 3, 1), "doomed");
    ASSERT_TRUE(doomed.come());
  }
  MemberThread one(ranked(address, 3, 1), "one"), two(ranked(address, 3, 2));
  EXPECT_EQ(text_of(two.roster().members[1].endpoint_address), "one");
  EXPECT_EQ(text_of(host.roster().members[1].endpoint_address), "one");
  EXPECT_EQ(one.roster().rank, 1u);
}

/// The others have heard of it, and confirmed; they hear the roster again.
TEST(RendezvousFaults, AJoinerThatDiesWithTheRosterMakesRoomForASuccessor) {
  const std::string address = fresh_address();
  MemberThread host(ranked(address, 3, 0)), second(ranked(address, 3, 2));
  for (int i = 0; i < 5; ++i) {
    HandJoiner doomed(ranked(address, 3, 1), "doomed");
    ASSERT_TRUE(doomed.come());
    ASSERT_TRUE(doomed.next_frame_of(FrameType::roster));
  }
  MemberThread one(ranked(address, 3, 1), "one");
  EXPECT_EQ(text_of(second.roster().members[1].endpoint_address), "one");
  EXPECT_EQ(text_of(host.roster().members[1].endpoint_address), "one");
  EXPECT_EQ(second.roster().key, one.roster().key);
}

TEST(RendezvousFaults, AKilledProcessMakesRoomForASuccessor) {
  const std::string address = fresh_tcp_address();
  Process host = member_process(ranked(address, 3, 0));
  for (int i = 0; i < 3; ++i) {
    HandJoiner witness(ranked(address, 3, 2));
    ASSERT_TRUE(witness.come());
    Process doomed = member_process(ranked(address, 3, 1));
    ASSERT_TRUE(witness.next_frame_of(FrameType::roster));  // so it has come
    doomed.kill();
  }
  Process one = member_process(ranked(address, 3, 1)), two = member_process(ranked(address, 3, 2));
  EXPECT_EQ(one.receive_line(), "in 1");
  EXPECT_EQ(two.receive_line(), "in 2");
  EXPECT_EQ(host.receive_line(), "in 0");
}

/// One of those who come takes its place, and the joiner that knew it comes again.
void expect_the_host_is_replaced(const std::string& address, Rank rank) {
  Process host = member_process(ranked(address, 3, rank));
  std::optional<HandJoiner> witness(ranked(address, 3, (rank + 1) % 3));
  ASSERT_TRUE(witness->come());
  MemberThread joiner(ranked(address, 3, (rank + 2) % 3));
  ASSERT_TRUE(witness->next_frame_of(FrameType::roster));  // so the joiner has come
  host.kill();
  witness.reset();
  MemberThread successor(ranked(address, 3, rank)), last(ranked(address, 3, (rank + 1) % 3));
  EXPECT_EQ(joiner.roster().key, successor.roster().key);
  EXPECT_EQ(joiner.roster().key, last.roster().key);
}

TEST(RendezvousFaults, AHostThatDiesMakesRoomForAnother) {
  expect_the_host_is_replaced(fresh_address(), 0);
  expect_the_host_is_replaced(fresh_tcp_address(), 2);
}

}  // namespace
}  // namespace dunlin::rendezvous
