#include <array>
#include <csignal>
#include <random>

#include <poll.h>

#include "daemon/serving.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// Clients that are killed, stopped or cut off, and daemons that end, as real processes.
namespace dunlin {
namespace {

using remote::Status;
using test::get;
using test::kPatienceMs;
using test::kPatienceNs;
using test::make;
using test::Parent;
using test::Process;
using test::put;
using test::Serving;

std::unique_ptr<SegmentSpace> attach_to(const std::string& group) {
  return attach({.group = group, .timeout_ms = kPatienceMs});
}

/// Holds the lock of the segment until it is killed; or stops in the middle of its puts under it.
int hold(const std::string& group, Key key, Parent& parent) {
  const auto space = attach_to(group);
  if (!space->lock(key).outcome(kPatienceNs).ok()) return 1;
  parent.send_line("held");
  std::array<std::uint64_t, 512> words{};
  for (std::uint64_t i = 1;; ++i) {
    words.fill(i);
    if (!space->put(key, bytes_of(words)).outcome(kPatienceNs).ok()) return 2;
  }
}

/// A daemon's clients use segments of another member, which they reach over that fabric.
struct DaemonDeath : test::OnBackends {
  static Key there(SegmentSpace& client, SegmentSpec spec) {
    spec.placement = Placement::on(1);
    return make(client, spec);
  }

  std::string name = test::fresh_group();
  Process home = Process([this](Parent&) {
    test::DaemonMember member(name, 2, 1, GetParam());
    run(member.space);
    return 0;
  });
};

DUNLIN_RUN_ON(test::backends_of({"Shm", "Tcp"}), DaemonDeath);

TEST_P(DaemonDeath, TheLockOfAKilledClientGoesToTheNextWhichIsTold) {
  const Serving daemon(name, {}, 2, GetParam());
  const auto client = daemon.attach();
  for (int round = 0; round < 5; ++round) {
    const Key key = there(*client, {.bytes = 4096});
    Process holder([&](Parent& parent) { return hold(daemon.group(), key, parent); });
    ASSERT_EQ(holder.receive_line(), "held");
    auto lock = client->lock(key);
    EXPECT_EQ(lock.wait(1'000'000), Status::under_way);
    holder.kill();
    const Outcome outcome = lock.outcome(kPatienceNs);
    EXPECT_TRUE(outcome.ok()) << lock.describe();
    EXPECT_TRUE(outcome.recovered) << "DMN-3";
    std::array<std::uint64_t, 512> words{};
    EXPECT_TRUE(client->get(key, bytes_of(words)).outcome(kPatienceNs).ok());
    for (const std::uint64_t word : words) EXPECT_EQ(word, words[0]) << "a put was torn";
    EXPECT_TRUE(client->unlock(key).outcome(kPatienceNs).ok());
  }
}

TEST_P(DaemonDeath, AStoppedClientIsCutOffAndChangesNothingWhenItWakesUp) {
  const Serving daemon(name, {.silence_timeout_ms = 1'000}, 2, GetParam());
  const auto client = daemon.attach();
  const Key key = there(*client, {.bytes = 4096});
  Process holder([&](Parent& parent) { return hold(daemon.group(), key, parent); });
  // Who waits without polling would be cut off, too.
  const auto await_holder = [&] {
    pollfd news{.fd = holder.descriptor(), .events = POLLIN, .revents = 0};
    while (::poll(&news, 1, 1) == 0) client->poll();
  };
  await_holder();
  ASSERT_EQ(holder.receive_line(), "held");
  holder.signal(SIGSTOP);
  const Outcome outcome = client->lock(key).outcome(kPatienceNs);
  EXPECT_TRUE(outcome.ok() && outcome.recovered);
  std::array<std::uint64_t, 512> words{};
  words.fill(UINT64_MAX);
  EXPECT_TRUE(client->put(key, bytes_of(words)).outcome(kPatienceNs).ok());
  holder.signal(SIGCONT);
  await_holder();                    // the end of its line
  EXPECT_EQ(holder.exit_code(), 2);  // its put ended with `stopped`
  EXPECT_TRUE(client->get(key, bytes_of(words)).outcome(kPatienceNs).ok());
  for (const std::uint64_t word : words) EXPECT_EQ(word, UINT64_MAX);
}

TEST_P(DaemonDeath, SegmentsWithoutANameGoWithTheirClient) {
  const Serving daemon(name, {}, 2, GetParam());
  const auto client = daemon.attach();
  Process other([&](Parent& parent) {
    const auto space = attach_to(daemon.group());
    parent.send_line(std::to_string(there(*space, {.bytes = 8}).value));
    there(*space, {.bytes = 8, .name = "stays"});
    parent.send_line("made");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  const Key key{std::stoull(other.receive_line())};
  ASSERT_EQ(other.receive_line(), "made");
  EXPECT_EQ(get(*client, key), 0U);
  other.kill();
  std::uint64_t value = 0;
  Status status = Status::ok;
  while (status == Status::ok)
    status = client->get(key, bytes_of(value)).outcome(kPatienceNs).status;
  EXPECT_EQ(status, Status::released);
  const Outcome found = client->find("stays").outcome(kPatienceNs);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(get(*client, found.key), 0U);
  EXPECT_EQ(put(*client, found.key, 1), Status::ok);
}

/// Puts whole blocks of one number, gets them, locks, allocates: until it is killed.
int work(const std::string& group, const std::vector<Key>& keys, std::uint64_t seed,
         Parent& parent) {
  const auto space = attach_to(group);
  std::mt19937_64 random(seed);
  std::array<std::uint64_t, 512> words{};
  parent.send_line("works");
  for (;;) {
    const Key key = keys[random() % keys.size()];
    words.fill(random());
    switch (random() % 4) {
      case 0:
        static_cast<void>(space->put(key, bytes_of(words)).outcome(kPatienceNs));
        break;
      case 1:
        static_cast<void>(space->get(key, bytes_of(words)).outcome(kPatienceNs));
        break;
      case 2: {
        auto lock = space->lock(key);
        static_cast<void>(lock.outcome(kPatienceNs));
        static_cast<void>(space->put(key, bytes_of(words)).outcome(kPatienceNs));
        static_cast<void>(space->unlock(key).outcome(kPatienceNs));
        break;
      }
      default:
        static_cast<void>(space->allocate({.bytes = 64}).outcome(kPatienceNs));
    }
  }
}

TEST_P(DaemonDeath, ClientsMayDieAtAnyInstruction) {
  const Serving daemon(name, {}, 2, GetParam());
  const auto client = daemon.attach();
  std::vector<Key> keys;
  for (const Coherence coherence : {Coherence::write, Coherence::strict, Coherence::version})
    keys.push_back(there(*client, {.bytes = 4096, .coherence = coherence}));
  std::mt19937_64 random(15);
  for (std::uint32_t round = 0; round < test::rounds(40); ++round) {
    Process one([&](Parent& parent) { return work(daemon.group(), keys, round, parent); });
    Process other([&](Parent& parent) { return work(daemon.group(), keys, round + 1000, parent); });
    ASSERT_EQ(one.receive_line(), "works");
    ASSERT_EQ(other.receive_line(), "works");
    std::array<std::uint64_t, 512> words{};
    for (std::uint64_t i = random() % 64; i > 0; --i)  // so long they live
      static_cast<void>(client->get(keys[i % 3], bytes_of(words)).outcome(kPatienceNs));
    if (round % 2 == 0) one.signal(SIGSTOP);
    other.kill();
    one.kill();
    for (const Key key : keys) {
      auto getting = client->get(key, bytes_of(words));
      ASSERT_TRUE(getting.outcome(kPatienceNs).ok()) << getting.describe();
      for (const std::uint64_t word : words) ASSERT_EQ(word, words[0]) << "a put was torn";
      auto lock = client->lock(key, kPatienceNs);
      ASSERT_TRUE(lock.outcome(kPatienceNs).ok()) << lock.describe();
      ASSERT_TRUE(client->unlock(key).outcome(kPatienceNs).ok());
    }
  }
  while (daemon.clients() != 1) static_cast<void>(get(*client, keys[0]));
}

/// By DMN-4 all operations of a client end with `stopped` when its daemon has ended.
TEST(DaemonEnd, AClientIsToldThatItsDaemonHasEndedAndAttachesAgain) {
  const std::string group = test::fresh_group();
  const auto serve = [&](Parent& parent) {
    test::DaemonMember member(group, 1, 0);
    Daemon daemon(member.space, {.group = group});
    parent.send_line("serves");
    run(daemon);
    return 0;
  };
  auto first = std::make_unique<Process>(serve);
  ASSERT_EQ(first->receive_line(), "serves");
  auto client = attach_to(group);
  const Key key = make(*client, {.bytes = 8});
  ASSERT_TRUE(client->lock(key).outcome(kPatienceNs).ok());
  std::uint64_t value = 0;
  first->signal(SIGSTOP);
  auto waits = client->get(key, bytes_of(value));
  EXPECT_EQ(waits.wait(1'000'000), Status::under_way);
  first->kill();
  EXPECT_EQ(waits.outcome(kPatienceNs).status, Status::stopped);
  EXPECT_TRUE(test::contains(waits.describe(), "attach again")) << waits.describe();
  EXPECT_EQ(put(*client, key, 1), Status::stopped);
  Process second(serve);
  client = attach_to(group);
  EXPECT_EQ(get(*client, make(*client, {.bytes = 8})), 0U);
}

}  // namespace
}  // namespace dunlin
