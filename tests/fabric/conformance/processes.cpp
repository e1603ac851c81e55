#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "fabric/conformance/pattern.hpp"
#include "fabric/conformance/real_group.hpp"
#include "process/child.hpp"

/// The same with real processes, and real deaths by SIGKILL. Rank 0 is the test itself.
namespace dunlin::conformance {

namespace {

using process::Child;

/// A process that ends well if `life` returns true.
Child child_that(const std::function<bool()>& life) {
  return Child([&] { return life() ? 0 : 1; });
}

bool poll_until(Fabric& fabric, const std::function<bool()>& condition) {
  const std::uint64_t started = steady_now_ns();
  while (!condition()) {
    if (patience_ends(started)) return false;
    fabric.poll();
    std::this_thread::yield();
  }
  return true;
}

bool connected_to_all(const Fabric& fabric, RegionId id) {
  for (Rank r = 0; r < fabric.size(); ++r) {
    if (!fabric.connected(r, id)) return false;
  }
  return true;
}

/// A fabric, a region and the events, as each of the processes has them.
struct Member {
  std::unique_ptr<Fabric> fabric;
  Region box;
  std::array<int, 8> deaths{};
  Subscription subscription;

  Member(const Backend& backend, const std::string& group, Rank rank, std::uint32_t nodes)
      : fabric(backend.join(group, rank, nodes)),
        box(fabric->allocate({.name = "box", .bytes = 8192})),
        subscription(fabric->subscribe([this](const Event& e) {
          if (e.kind == Event::Kind::peer_failed) ++deaths.at(e.peer);
        })) {
    fabric->announce(box);
  }
  bool connect() {
    return poll_until(*fabric, [&] { return connected_to_all(*fabric, box.id()); });
  }
  [[nodiscard]] std::uint64_t load(std::size_t offset) const {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(box.memory().data() + offset));
  }
  bool post(const Operation& operation) {
    return poll_until(*fabric, [&] { return fabric->post(operation).all(); });
  }
};

constexpr std::size_t kFlag = 0;
constexpr std::size_t kAck = 64;
constexpr std::size_t kData = 128;
constexpr std::size_t kSeen = 4160;  // behind what be_busy() puts

/// Everything at once, for ever: what a process might be doing when it is killed.
bool be_busy(Member& me) {
  std::array<std::byte, 4000> source{};
  std::uint64_t before = 0;
  Completion done;
  std::uint64_t round = 0;
  while (!me.fabric->failed(0)) {
    ++round;
    fill_pattern(source, round);
    const std::array<Operation, 4> batch{
        put(0, me.box.id(), kData, source.data(), source.size()),
        write(0, me.box.id(), kFlag, &round, 8),
        fetch_add(0, me.box.id(), kAck, 1, &before).notify(done),
        read(0, me.box.id(), 4096, source.data(), 4000).notify(done)};
    static_cast<void>(me.fabric->post(batch));
    static_cast<void>(me.fabric->send(0, 0, std::span(source).first(round % 200)));
    const Region passing = me.fabric->allocate({.name = "passing", .bytes = 4096});
    me.fabric->announce(passing);
    if (!poll_until(*me.fabric, [&] { return done.finished(); })) return false;
  }
  return true;
}

}  // namespace

#define SKIP_IF_SIMULATED() \
  if (!GetParam().join) GTEST_SKIP() << "simulated nodes are not processes"

TEST_P(Processes, KeepTheOrderOfAStream) {
  SKIP_IF_SIMULATED();
  constexpr std::uint64_t kRounds = 2'000;
  const Backend& backend = GetParam();
  const std::string group = fresh_group_name();
  Child writer = child_that([&] {
    Member me(backend, group, 1, 2);
    std::array<std::byte, 3000> source{};
    bool well = me.connect();
    for (std::uint64_t round = 1; well && round <= kRounds; ++round) {
      fill_pattern(source, round);
      well = me.post(put(0, me.box.id(), kData, source.data(), source.size())) &&
             me.post(write(0, me.box.id(), kFlag, &round, 8)) &&
             poll_until(*me.fabric, [&] { return me.load(kAck) == round; });
    }
    return well;
  });
  Member me(backend, group, 0, 2);
  ASSERT_TRUE(me.connect());
  std::uint64_t wrong = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.load(kFlag) == round; }));
    if (!has_pattern(me.box.memory().subspan(kData, 3000), round)) ++wrong;
    ASSERT_TRUE(me.post(write(1, me.box.id(), kAck, &round, 8)));
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(writer.wait().well());
}

TEST_P(Processes, DrawEveryTicketOnce) {
  SKIP_IF_SIMULATED();
  constexpr std::uint64_t kEach = 5'000;
  const Backend& backend = GetParam();
  const std::string group = fresh_group_name();
  const auto draw = [&](Member& me) {
    bool well = me.connect();
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; well && i < kEach; ++i) {
      std::uint64_t ticket = 0;
      Completion done;
      well = me.post(fetch_add(0, me.box.id(), kFlag, 1, &ticket).notify(done)) &&
             poll_until(*me.fabric, [&] { return done.finished(); });
      well = well && (i == 0 || ticket > last);
      last = ticket;
    }
    return well && me.post(fetch_add(0, me.box.id(), kAck, 1, nullptr));
  };
  const auto child = [&](Rank rank) {
    return [&, rank] {
      Member me(backend, group, rank, 3);
      const bool well = draw(me);
      while (well && me.load(kAck) != 1 && !me.fabric->failed(0)) {
        me.fabric->poll();
        std::this_thread::yield();
      }
      return well && me.load(kAck) == 1;
    };
  };
  Child one = child_that(child(1));
  Child two = child_that(child(2));
  Member me(backend, group, 0, 3);
  EXPECT_TRUE(draw(me));
  // The others may be slower, so only a minute without a ticket is too long.
  for (std::uint64_t drawn = 0; me.load(kAck) != 3; drawn = me.load(kFlag))
    ASSERT_TRUE(
        poll_until(*me.fabric, [&] { return me.load(kAck) == 3 || me.load(kFlag) != drawn; }));
  EXPECT_EQ(me.load(kFlag), 3 * kEach);
  const std::uint64_t enough = 1;
  ASSERT_TRUE(me.post(write(1, me.box.id(), kAck, &enough, 8)));
  ASSERT_TRUE(me.post(write(2, me.box.id(), kAck, &enough, 8)));
  // Without this member, the others give up.
  ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.fabric->failed(1) && me.fabric->failed(2); }));
  EXPECT_TRUE(one.wait().well());
  EXPECT_TRUE(two.wait().well());
}

TEST_P(Processes, LearnOfASigkillOnceAndGoOn) {
  SKIP_IF_SIMULATED();
  const Backend& backend = GetParam();
  const std::string group = fresh_group_name();
  const auto serve = [](Member& me) {
    me.fabric->receive(0, [](Rank, std::span<const std::byte>) {});
    return me.connect();
  };
  Child victim = child_that([&] {
    Member me(backend, group, 1, 3);
    return serve(me) && be_busy(me);
  });
  Child witness = child_that([&] {
    Member me(backend, group, 2, 3);
    if (!serve(me)) return false;
    if (!poll_until(*me.fabric, [&] { return me.fabric->failed(1); })) return false;
    const std::uint64_t seen = 1;
    return me.post(write(0, me.box.id(), kSeen, &seen, 8)) &&
           poll_until(*me.fabric, [&] { return me.fabric->failed(0); }) && me.deaths[1] == 1;
  });
  {
    Member me(backend, group, 0, 3);
    ASSERT_TRUE(serve(me));
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.load(kFlag) >= 50; }));
    victim.kill();
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.fabric->failed(1); }));
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.load(kSeen) == 1; }));
    EXPECT_EQ(me.deaths[1], 1);
    EXPECT_EQ(me.deaths[2], 0);
    EXPECT_GE(me.load(kFlag), 50U);
    Completion done;
    const std::uint64_t value = 1;
    ASSERT_TRUE(me.post(write(1, me.box.id(), 0, &value, 8).notify(done, Notify::remotely)));
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return done.finished(); }));
    EXPECT_TRUE(done.failed());
  }
  EXPECT_TRUE(witness.wait().well());
}

TEST_P(Processes, KilledAtAnyMomentDoNotHinderTheNextGroupOfThatName) {
  SKIP_IF_SIMULATED();
  const Backend& backend = GetParam();
  const std::string group = fresh_group_name();
  std::minstd_rand random(7);
  for (int round = 0; round < 25; ++round) {
    Child victim = child_that([&] {
      Member me(backend, group, 1, 2);
      return me.connect() && be_busy(me);
    });
    Member me(backend, group, 0, 2);
    me.fabric->receive(0, [](Rank, std::span<const std::byte>) {});
    const std::uint64_t polls = random() % 2'000;
    for (std::uint64_t i = 1; i <= polls; ++i) {
      me.fabric->poll();
      if (i % 100 == 0) std::this_thread::yield();
    }
    victim.kill();
    ASSERT_TRUE(poll_until(*me.fabric, [&] { return me.fabric->failed(1); })) << "round " << round;
    EXPECT_EQ(me.deaths[1], 1);
  }
}

TEST_P(Processes, DyingUnderOperationsLeaveNoneHanging) {
  SKIP_IF_SIMULATED();
  const Backend& backend = GetParam();
  const std::string group = fresh_group_name();
  Child victim = child_that([&] {
    Member me(backend, group, 1, 2);
    return me.connect() && poll_until(*me.fabric, [&] { return me.fabric->failed(0); });
  });
  Member me(backend, group, 0, 2);
  ASSERT_TRUE(me.connect());
  std::array<std::byte, 4096> source{};
  std::array<std::byte, 4096> target{};
  Completion done;
  std::uint64_t posted = 0;
  std::uint64_t after = 0;
  while (after < 100) {
    const std::array<Operation, 3> batch{
        put(1, me.box.id(), 0, source.data(), 4096).notify(done, Notify::remotely),
        read(1, me.box.id(), 0, target.data(), 4096).notify(done),
        fetch_add(1, me.box.id(), 0, 1, nullptr).notify(done)};
    posted += me.fabric->post(batch).accepted;
    if (posted > 300) victim.kill();
    if (me.fabric->failed(1)) ++after;
    me.fabric->poll();
    std::this_thread::yield();
  }
  ASSERT_TRUE(poll_until(*me.fabric, [&] { return done.finished(); }));
  EXPECT_TRUE(done.failed());
  EXPECT_EQ(done.failed_peer(), 1U);
  EXPECT_EQ(me.deaths[1], 1);
}

}  // namespace dunlin::conformance
