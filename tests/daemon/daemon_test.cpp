#include <array>
#include <csignal>
#include <cstring>
#include <numeric>

#include <dunlin/join.hpp>

#include "daemon/serving.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::get;
using test::kPatienceMs;
using test::kPatienceNs;
using test::make;
using test::Parent;
using test::Process;
using test::put;
using test::Serving;
using test::what_is_thrown_by;

constexpr std::array kEach{Coherence::null,   Coherence::read,    Coherence::write,
                           Coherence::strict, Coherence::version, Coherence::temporal};

TEST(Daemon, WhatOneClientPutsAnotherGetsUnderEachCoherence) {
  const Serving daemon(test::fresh_group());
  const auto one = daemon.attach(), other = daemon.attach();
  for (const Coherence coherence : kEach) {
    const Key key = make(*one, {.bytes = 8, .coherence = coherence});
    EXPECT_EQ(get(*other, key), 0U);
    EXPECT_EQ(put(*one, key, 5), Status::ok);
    EXPECT_EQ(get(*other, key), 5U);
    EXPECT_EQ(put(*other, key, 6), Status::ok);
    EXPECT_EQ(get(*one, key), 6U);
  }
}

TEST(Daemon, AForkedChildOfAClientChangesNothing) {
  const Serving daemon(test::fresh_group());
  Process client([&](Parent& parent) {
    std::unique_ptr<SegmentSpace> space = daemon.attach();
    const Key key = make(*space, {.bytes = 8, .coherence = Coherence::write});
    if (put(*space, key, 1) != Status::ok) return 1;
    std::uint64_t value = 7;
    auto under_way = std::make_unique<SegmentOperation>();
    *under_way = space->get(key, std::as_writable_bytes(std::span(&value, 1)));
    Process child([&](Parent&) {
      for (std::uint64_t i = 0; i < 10; ++i)
        if (put(*space, key, 100 + i) != Status::stopped) return 1;
      under_way.reset();
      space.reset();
      return 0;
    });
    if (const int code = child.exit_code(); code != 0) {
      parent.send_line("the child saw what it should not: " + std::to_string(code));
      return 1;
    }
    if (under_way->wait(kPatienceNs) != Status::ok || value != 1) return 2;
    for (std::uint64_t i = 2; i < 100; ++i)
      if (put(*space, key, i) != Status::ok || get(*space, key) != i) return 3;
    parent.send_line("nothing");
    return 0;
  });
  EXPECT_EQ(client.receive_line(), "nothing");
  EXPECT_EQ(client.exit_code(), 0);
}

TEST(Daemon, ClientsAndMembersShareSegments) {
  const std::string group = test::fresh_group();
  Process member([&](Parent& parent) {
    test::DaemonMember here(group, 2, 1);
    const auto made = here.space.allocate({.bytes = 8, .placement = Placement::here(), .name = "a"})
                          .outcome(kPatienceNs);
    std::uint64_t value = 7;
    if (!here.space.put(made.key, bytes_of(value)).outcome(kPatienceNs).ok()) return 1;
    parent.send_line("made");
    run_until(
        here.space,
        [&] {
          auto again = here.space.get(made.key, bytes_of(value));
          return again.outcome(kPatienceNs).ok() && value == 8;
        },
        kPatienceMs);
    parent.send_line(std::to_string(value));
    static_cast<void>(parent.receive_line());
    return 0;
  });
  const Serving daemon(group, {}, 2);
  ASSERT_EQ(member.receive_line(), "made");
  const auto client = daemon.attach();
  const Outcome found = client->find("a").outcome(kPatienceNs);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(get(*client, found.key), 7U);
  EXPECT_EQ(put(*client, found.key, 8), Status::ok);
  EXPECT_EQ(member.receive_line(), "8");
}

TEST(Daemon, BytesOfAnySizeAndPlaceTravelWhole) {
  const Serving daemon(test::fresh_group(), {.transfer_bytes = 4096});
  const auto client = daemon.attach();
  const Key key = make(*client, {.bytes = 8192, .coherence = Coherence::write});
  for (const std::size_t bytes : {1UL, 7UL, 8UL, 20UL, 24UL, 25UL, 31UL, 33UL, 100UL, 4000UL})
    for (const std::size_t offset : {0UL, 3UL, 8UL, 77UL}) {
      std::vector<std::uint64_t> from(600), to(600);
      auto* const source = reinterpret_cast<std::byte*>(from.data()) + offset % 8;
      auto* const target = reinterpret_cast<std::byte*>(to.data()) + offset % 8;
      for (std::size_t i = 0; i < bytes; ++i) source[i] = std::byte(i * 7 + bytes + offset);
      auto putting = client->put(key, {source, bytes}, offset);
      ASSERT_TRUE(putting.outcome(kPatienceNs).ok()) << putting.describe();
      auto getting = client->get(key, {target, bytes}, offset);
      ASSERT_TRUE(getting.outcome(kPatienceNs).ok()) << getting.describe();
      EXPECT_EQ(std::memcmp(source, target, bytes), 0) << bytes << " at " << offset;
    }
}

TEST(Daemon, ErrorsAreThoseOfASpace) {
  const Serving daemon(test::fresh_group(), {.transfer_bytes = 4096, .quota_bytes = 16'384});
  const auto client = daemon.attach();
  const Key key = make(*client, {.bytes = 64, .coherence = Coherence::write});
  std::array<std::uint64_t, 1024> words{};
  const auto status_of = [&](SegmentOperation&& operation) {
    return operation.outcome(kPatienceNs).status;
  };
  const auto first = std::span(words).first(9);
  EXPECT_EQ(status_of(client->get(key, std::as_writable_bytes(first))), Status::out_of_range);
  EXPECT_EQ(status_of(client->get(key, {})), Status::out_of_range);
  EXPECT_EQ(status_of(client->get(key, bytes_of(words[0]), 4)), Status::misaligned);
  EXPECT_EQ(status_of(client->get(key, bytes_of(words))), Status::over_quota);
  EXPECT_EQ(status_of(client->get(Key::of(0, 77, 1), bytes_of(words[0]))), Status::unknown);
  EXPECT_EQ(status_of(client->get(Key::of(9, 0, 1), bytes_of(words[0]))), Status::unknown);
  EXPECT_EQ(status_of(client->get_if_changed(make(*client, {.bytes = 8}), bytes_of(words[0]), 0)),
            Status::not_allowed);
  EXPECT_EQ(status_of(client->unlock(key)), Status::not_held);
  EXPECT_EQ(status_of(client->find("nothing")), Status::unknown);
  EXPECT_EQ(status_of(client->find(std::string(65, 'a'))), Status::unknown);
  EXPECT_EQ(status_of(client->allocate({.bytes = 16'384})), Status::over_quota);
  EXPECT_EQ(status_of(client->release(key)), Status::ok);
  EXPECT_EQ(status_of(client->get(key, bytes_of(words[0]))), Status::released);
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         static_cast<void>(client->allocate({.bytes = 8, .placement = {5}}));
                       }),
                       "no member 5"));
}

TEST(Daemon, VersionsComeThrough) {
  const Serving daemon(test::fresh_group());
  const auto client = daemon.attach();
  const Key key = make(*client, {.bytes = 8, .coherence = Coherence::delta, .versions = 4});
  for (std::uint64_t i = 1; i <= 6; ++i) EXPECT_EQ(put(*client, key, i), Status::ok);
  std::uint64_t value = 0;
  EXPECT_TRUE(client->get_version(key, bytes_of(value), 4).outcome(kPatienceNs).ok());
  EXPECT_EQ(value, 4U);
  EXPECT_EQ(client->get_version(key, bytes_of(value), 2).outcome(kPatienceNs).status,
            Status::not_kept);
  const Outcome same = client->get_if_changed(key, bytes_of(value), 6).outcome(kPatienceNs);
  EXPECT_TRUE(same.ok() && same.unchanged && same.version == 6);
  EXPECT_EQ(
      client->get_version(key, bytes_of(value), kLatestVersion - 1).outcome(kPatienceNs).version,
      5U);
  EXPECT_EQ(value, 5U);
  value = 7;
  const Outcome lost = client->put_if_version(key, bytes_of(value), 5).outcome(kPatienceNs);
  EXPECT_TRUE(lost.status == Status::changed && lost.version == 6) << lost.describe();
  EXPECT_EQ(client->put_if_version(key, bytes_of(value), 6).outcome(kPatienceNs).version, 7U);
  constexpr std::uint64_t kHourNs = 3'600'000'000'000;
  EXPECT_EQ(client->get_no_older(key, bytes_of(value), kHourNs).outcome(kPatienceNs).version, 7U);
  EXPECT_EQ(put(*daemon.attach(), key, 8), Status::ok);
  EXPECT_EQ(client->get_no_older(key, bytes_of(value), kHourNs).outcome(kPatienceNs).version, 8U)
      << "both clients are of one process of the group";
}

TEST(Daemon, ALockExcludesOtherClientsToo) {
  const Serving daemon(test::fresh_group());
  const auto one = daemon.attach(), other = daemon.attach();
  const Key key = make(*one, {.bytes = 8});
  ASSERT_TRUE(one->lock(key).outcome(kPatienceNs).ok());
  EXPECT_EQ(one->lock(key).outcome(kPatienceNs).status, Status::already_held);
  EXPECT_EQ(other->try_lock(key).outcome(kPatienceNs).status, Status::busy);
  EXPECT_EQ(other->lock(key, 1'000'000).outcome(kPatienceNs).status, Status::timed_out);
  EXPECT_EQ(put(*one, key, 1), Status::ok);  // under the lock
  std::uint64_t value = 2;
  auto waits = other->put(key, bytes_of(value));
  EXPECT_EQ(get(*one, key), 1U);
  EXPECT_FALSE(waits.finished());
  ASSERT_TRUE(one->unlock(key).outcome(kPatienceNs).ok());
  EXPECT_TRUE(waits.outcome(kPatienceNs).ok());
  EXPECT_EQ(get(*one, key), 2U);
}

TEST(Daemon, AGuardGivesItsLockBack) {
  const Serving daemon(test::fresh_group());
  const auto one = daemon.attach(), other = daemon.attach();
  const Key key = make(*one, {.bytes = 8});
  for (int i = 0; i < 100; ++i) {
    SegmentSpace& space = i % 2 == 0 ? *one : *other;
    const SegmentLock lock(space, key, kPatienceNs);
    EXPECT_EQ(put(space, key, get(space, key) + 1), Status::ok);
  }
  EXPECT_EQ(get(*one, key), 100U);
}

TEST(Daemon, AnAbandonedLockIsGivenBack) {
  const Serving daemon(test::fresh_group());
  const auto one = daemon.attach(), other = daemon.attach();
  const Key key = make(*one, {.bytes = 8});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(one->lock(key).outcome(kPatienceNs).ok());
    { const auto given_up = other->lock(key); }
    static_cast<void>(one->unlock(key));
    auto lock = one->lock(key);
    while (!lock.finished()) {
      static_cast<void>(one->poll());
      static_cast<void>(other->poll());  // it may have got the lock just before it gave up
    }
    ASSERT_TRUE(lock.ok());
    static_cast<void>(one->unlock(key));
  }
}

TEST(Daemon, ManyOperationsAreUnderWayAtOnce) {
  const Serving daemon(test::fresh_group(), {.operations = 8});
  const auto client = daemon.attach();
  const Key key = make(*client, {.bytes = 800, .coherence = Coherence::null});
  std::vector<std::uint64_t> from(100), to(100);
  std::iota(from.begin(), from.end(), 1);
  std::vector<std::unique_ptr<SegmentOperation>> all;
  std::vector<remote::CallBase*> pointers;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (all.size() <= i) {
        all.push_back(std::make_unique<SegmentOperation>());
        pointers.emplace_back(all.back().get());
      }
      *all[i] = client->put(key, bytes_of(from[i]), i * 8);
    }
    ASSERT_TRUE(remote::wait_all(pointers, kPatienceNs));
    for (std::size_t i = 0; i < from.size(); ++i)
      *all[i] = client->get(key, bytes_of(to[i]), i * 8);
    ASSERT_TRUE(remote::wait_all(pointers, kPatienceNs));
    ASSERT_EQ(from, to);
    for (std::uint64_t& word : from) ++word;
  }
}

TEST(Daemon, OperationsThatAreGivenUpLeaveTheirMemoryAlone) {
  const Serving daemon(test::fresh_group(), {.operations = 4});
  const auto client = daemon.attach();
  const Key key = make(*client, {.bytes = 4096, .coherence = Coherence::strict});
  for (int i = 0; i < 200; ++i) {
    const auto words = std::make_unique<std::array<std::uint64_t, 512>>();
    auto put_operation = client->put(key, bytes_of(*words));
    auto get_operation = client->get(key, bytes_of(*words));
    if (i % 3 == 0) static_cast<void>(client->poll());
  }
  EXPECT_EQ(put(*client, key, 9), Status::ok);
  EXPECT_EQ(get(*client, key), 9U);
}

TEST(Daemon, ServesSixtyFourClientsThatCountUnderOneLock) {
  constexpr std::uint32_t kClients = 64, kRounds = 10;
  const Serving daemon(test::fresh_group());
  const auto first = daemon.attach();
  const Key key = make(*first, {.bytes = 8, .name = "count"});
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < kClients; ++i)
    threads.emplace_back([&] {
      const auto space = daemon.attach();
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const SegmentLock lock(*space, key, kPatienceNs);
        EXPECT_EQ(put(*space, key, get(*space, key) + 1), Status::ok);
      }
    });
  threads.clear();
  EXPECT_EQ(get(*first, key), kClients * kRounds);
}

TEST(Daemon, ASegmentCountsWithWhatItTakesOfThePool) {
  const Serving daemon(test::fresh_group(), {.quota_bytes = 10 * 128});
  const auto client = daemon.attach();
  for (int i = 0; i < 10; ++i) make(*client, {.bytes = 1});
  EXPECT_EQ(client->allocate({.bytes = 1}).outcome(kPatienceNs).status, Status::over_quota);
}

TEST(Daemon, ClientsThatHoldAllLocksTheyMayLeaveSomeForPutsAndAStatusForOthers) {
  constexpr std::uint32_t kLocks = kMaxClientLocks / 4;
  const Serving daemon(test::fresh_group(), {.quota_locks = kLocks});
  std::vector<std::unique_ptr<SegmentSpace>> greedy;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(daemon.attach());
    for (std::uint32_t lock = 0; lock < kLocks; ++lock) {
      const Key key = make(*greedy.back(), {.bytes = 8});
      ASSERT_TRUE(greedy.back()->lock(key).outcome(kPatienceNs).ok());
    }
  }
  const auto other = daemon.attach();
  const Key key = make(*other, {.bytes = 8, .coherence = Coherence::write});
  EXPECT_EQ(other->lock(key).outcome(kPatienceNs).status, Status::over_quota);
  EXPECT_EQ(put(*other, key, 1), Status::ok);
  greedy.pop_back();
  Status status = Status::over_quota;
  while (status == Status::over_quota) status = other->lock(key).outcome(kPatienceNs).status;
  EXPECT_EQ(status, Status::ok);
}

TEST(Daemon, TakesNoMoreClientsThanItMay) {
  const Serving daemon(test::fresh_group(), {.clients = 2});
  auto one = daemon.attach(), other = daemon.attach();
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(daemon.attach()); }),
                       "serves 2 clients already"));
  // The count is that of the daemon's last poll: a 1 must not be one of before.
  while (daemon.clients() != 2) static_cast<void>(other->find("x").outcome(kPatienceNs));
  one.reset();
  while (daemon.clients() != 1) static_cast<void>(other->find("x").outcome(kPatienceNs));
  EXPECT_NO_THROW(one = daemon.attach());
}

TEST(Daemon, IsAloneInItsGroup) {
  const std::string group = test::fresh_group();
  const Serving daemon(group);
  const auto fabric = join({.group = group + "x", .members = 1});
  SegmentSpace space(*fabric);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { const Daemon second(space, {.group = group}); }),
                       "has one already"));
}

TEST(Daemon, WithoutOneAttachingSaysSo) {
  EXPECT_TRUE(contains(what_is_thrown_by([] {
                         static_cast<void>(attach({.group = test::fresh_group(), .timeout_ms = 1}));
                       }),
                       "did not come within 1 ms"));
}

}  // namespace
}  // namespace dunlin
