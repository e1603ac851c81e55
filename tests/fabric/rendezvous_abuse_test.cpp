#include <atomic>
#include <memory>
#include <random>

#include <sys/resource.h>

#include "fabric/bytes.hpp"
#include "fabric/rendezvous_group.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Strangers, and members that broke: whatever they do, the right ones meet.
namespace dunlin::rendezvous {
namespace {

using namespace test;
using dunlin::test::Parent;
using dunlin::test::Process;

constexpr std::size_t kMostStrangers = 64 + 1;  // as one member is missing

void say(const Descriptor& socket, Bytes bytes) {
  static_cast<void>(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

bool hung_up(const Descriptor& socket) {
  std::array<std::byte, 256> said;
  const ssize_t got = recv(socket.get(), said.data(), said.size(), 0);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void wait_until_hung_up(const Descriptor& socket) {
  while (!hung_up(socket)) wait_for_news_of(socket);
}

/// A stranger can have it only by listening to a member.
std::vector<std::byte> recorded_hello() { return hello_of(our_tls()); }

/// A host that waits for one more.
class RendezvousAbuse : public testing::TestWithParam<const char*> {
 protected:
  void expect_to_meet() {
    const Roster second = meet_with(counted(address_, 2), "second");
    EXPECT_EQ(host_.roster().key, second.key);
    EXPECT_EQ(text_of(host_.roster().members[second.rank].endpoint_address), "second");
  }

  std::string address_ = std::string(GetParam()) == "tcp" ? fresh_tcp_address() : fresh_address();
  MemberThread host_{counted(address_, 2)};
};

INSTANTIATE_TEST_SUITE_P(Over, RendezvousAbuse, testing::Values("unix", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

TEST_P(RendezvousAbuse, GarbageIsHungUpOn) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Descriptor stranger = connect_to(address_);
    std::vector<std::byte> garbage(1 + random() % 5000);
    for (std::byte& b : garbage) b = static_cast<std::byte>(random());
    say(stranger, garbage);
    wait_until_hung_up(stranger);
  }
  expect_to_meet();
}

TEST_P(RendezvousAbuse, ImpossibleLengthsAreHungUpOn) {
  const auto expect_hung_up_with = [this](std::size_t at, std::uint32_t length, int bytes) {
    std::vector<std::byte> hello = recorded_hello();
    for (int i = 0; i < bytes; ++i)
      hello[at + static_cast<std::size_t>(i)] =
          static_cast<std::byte>(length >> 8 * (bytes - 1 - i));
    const Descriptor stranger = connect_to(address_);
    say(stranger, hello);
    wait_until_hung_up(stranger);
  };
  for (const std::uint32_t length : {0u, 1u, kMaxHelloBytes + 1, 1u << 17, 0xffffffu})
    expect_hung_up_with(6, length, 3);  // of the handshake message
  for (const std::uint32_t length : {kMaxHelloBytes + 1, 0x4101u, 0xffffu})
    expect_hung_up_with(3, length, 2);  // record
  expect_to_meet();
}

TEST_P(RendezvousAbuse, ThoseWhoKnowAnotherSecretAreHungUpOn) {
  const Tls wrong("not what all members know", {});
  for (int i = 0; i < 100; ++i) {
    const Descriptor stranger = connect_to(address_);
    say(stranger, hello_of(wrong));
    wait_until_hung_up(stranger);
  }
  expect_to_meet();
}

/// Each has begun to speak, and each takes its time.
TEST_P(RendezvousAbuse, SlowOnesAreNotWaitedFor) {
  std::vector<Descriptor> slow;
  const std::vector<std::byte> call = recorded_hello();
  for (std::size_t i = 0; i < 300; ++i) {
    slow.push_back(connect_to(address_));
    say(slow.back(), Bytes(call).first(i % call.size()));
  }
  for (std::size_t i = 0; i + kMostStrangers < slow.size(); ++i) wait_until_hung_up(slow[i]);
  expect_to_meet();
}

/// These repeat what a member has said, and cannot go on.
/// RDV-N4 bounds how many callers without a proof are kept.
TEST_P(RendezvousAbuse, ThoseWhoNeverProveAnythingMakeRoom) {
  std::vector<Descriptor> silent;
  const std::vector<std::byte> call = recorded_hello();
  for (int i = 0; i < 300; ++i) {
    silent.push_back(connect_to(address_));
    say(silent.back(), call);
  }
  std::size_t gone = 0;
  while (gone + kMostStrangers < silent.size())
    gone = static_cast<std::size_t>(std::count_if(silent.begin(), silent.end(), hung_up));
  expect_to_meet();
}

/// Until the members have met, or so many have called.
class Flood {
 public:
  Flood(std::string address, std::vector<std::byte> words) {
    // No host keeps up with callers who have more of the processors than it has: so the flood ebbs
    // away, and soon enough for a member that has a minute on a machine with much other work, where
    // a caller who speaks takes the host some milliseconds.
    static constexpr int kMost = dunlin::test::kSanitized ? 1'500 : 4'000;
    for (int i = 0; i < 2; ++i)
      threads_.emplace_back([this, address, words] {
        std::string fault;
        const SocketAddress target = resolve(parse_address(address), fault).at(0);
        std::vector<Descriptor> kept(50);
        for (std::size_t next = 0; !over_ && calls_ < kMost; next = (next + 1) % kept.size()) {
          kept[next] = begin_to_connect(target, fault);
          if (!kept[next]) continue;
          ++calls_;
          if (!words.empty()) say(kept[next], words);
        }
      });
  }
  ~Flood() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void wait_for(int calls) const {
    while (calls_ < calls) std::this_thread::yield();
  }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int> calls_{0};
  std::vector<std::thread> threads_;
};

TEST_P(RendezvousAbuse, AFloodOfSilentCallersDoesNotKeepMembersOut) {
  const Flood flood(address_, {});
  flood.wait_for(500);
  expect_to_meet();
}

TEST_P(RendezvousAbuse, AFloodOfCallersWhoSpeakDoesNotKeepMembersOut) {
  const Flood flood(address_, recorded_hello());
  flood.wait_for(500);
  expect_to_meet();
}

std::vector<std::byte> heard_from(const Descriptor& socket) {
  std::vector<std::byte> said(1024);
  wait_for_news_of(socket);
  const ssize_t got = recv(socket.get(), said.data(), said.size(), 0);
  said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return said;
}

TEST_P(RendezvousAbuse, ARecordedConversationIsNoProof) {
  std::vector<std::byte> recorded;
  {
    const Descriptor socket = connect_to(address_);
    Channel member(Side::joiner, our_tls());
    const auto flush = [&] {
      const Bytes words = member.output();
      recorded.insert(recorded.end(), words.begin(), words.end());
      say(socket, words);
      member.was_sent(words.size());
    };
    for (flush(); !member.proved(); flush()) member.receive(heard_from(socket));
  }
  const Descriptor stranger = connect_to(address_);
  say(stranger, recorded);
  wait_until_hung_up(stranger);
  expect_to_meet();
}

/// Knows the secret, says something, and is hung up on.
void expect_hung_up(const std::string& address, const std::function<void(HandJoiner&)>& act) {
  HandJoiner rogue(counted(address, 2));
  ASSERT_TRUE(rogue.prove());
  act(rogue);
  rogue.write();
  while (rogue.next_frame()) {
  }
}

TEST_P(RendezvousAbuse, WhoKnowsTheSecretAndNotTheProtocolIsHungUpOn) {
  const auto round = [](std::uint32_t number) {
    std::vector<std::byte> body;
    Writer(body).u32(number);
    return body;
  };
  const std::vector<std::byte> nonsense(kJoinRequestBytes, std::byte{0xff});
  expect_hung_up(address_, [&](HandJoiner& g) { g.channel().send(FrameType::have, round(1)); });
  expect_hung_up(address_,
                 [&](HandJoiner& g) { g.channel().send(FrameType::request_join, nonsense); });
  expect_hung_up(address_, [&](HandJoiner& g) {
    g.visit().request_join();
    g.visit().request_join();
  });
  expect_hung_up(address_, [&](HandJoiner& g) {
    g.visit().request_join();
    g.channel().send(FrameType::have, round(1000));
  });
  expect_hung_up(address_, [&](HandJoiner& g) { say(g.socket(), bytes_of("garbage, after all")); });
  expect_to_meet();
}

/// It could hold up all others, but it cannot fill the host's memory, and makes room when it goes.
TEST(RendezvousAbuseOfTrust, AMemberThatNeverReadsMakesRoomForASuccessor) {
  const std::string address = fresh_address(), endpoint_address(kMaxEndpointAddressBytes, 'x');
  const Options options = counted(address, 100);
  MemberThread host(options, endpoint_address);
  std::vector<std::unique_ptr<MemberThread>> others;
  {
    HandJoiner deaf(options, endpoint_address), witness(options, endpoint_address);
    ASSERT_TRUE(deaf.come());
    ASSERT_TRUE(witness.come());
    for (int i = 0; i < 97; ++i)
      others.push_back(std::make_unique<MemberThread>(options, endpoint_address));
    ASSERT_TRUE(witness.confirm());
  }
  for (int i = 0; i < 2; ++i)
    others.push_back(std::make_unique<MemberThread>(options, endpoint_address));
  EXPECT_EQ(host.roster().members.size(), 100u);
}

/// Strangers take all the descriptors that a host may have.
TEST(RendezvousAbuseOfLimits, AHostWithoutDescriptorsMakesRoomForItsMembers) {
  const std::string address = fresh_address();
  Process host([&](Parent& parent) {
    const rlimit limit{200, 200};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    MemberThread member(ranked(address, 2, 0));
    static_cast<void>(
        parent.receive_line());  // the rendezvous has begun; now the process opens much else
    std::vector<Descriptor> used;
    do used.emplace_back(dup(0));
    while (used.back());
    used.resize(used.size() - 20);
    parent.send_line("busy");
    parent.send_line("member " + std::to_string(member.roster().rank));
    return 0;
  });
  const Descriptor first = connect_to(address);
  say(first, endpoint_address_of("hello?"));
  wait_until_hung_up(first);
  host.send_line("begun");
  std::vector<Descriptor> strangers;
  EXPECT_EQ(host.receive_line(), "busy");
  for (int i = 0; i < 100; ++i) strangers.push_back(connect_to(address));
  EXPECT_EQ(fault_of(ranked(address, 2, 1)), "nothing");
  EXPECT_EQ(host.receive_line(), "member 0");
}

}  // namespace
}  // namespace dunlin::rendezvous
