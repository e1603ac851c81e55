#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include <poll.h>

#include "fabric/conformance/real_group.hpp"

/// A node that sleeps is woken by what arrives, whenever it arrives.
namespace dunlin::conformance {

namespace {

using Kind = Event::Kind;

/// Longer than anything takes; a sleep of that length was not ended by a doorbell.
constexpr std::uint64_t kLongNs = 30'000'000'000;

enum class Moment { before_prepare, before_sleep, in_sleep };

struct Arrival {
  std::string what;
  std::function<void()> act;       // on another thread than the sleeper's
  std::function<bool()> has_come;  // on the sleeper's
  std::function<void()> others_poll;
};

/// Sleeps as a runner does until it has come; returns how many sleeps were not ended by a doorbell.
int sleep_until(Fabric& fabric, const std::function<bool()>& has_come) {
  int slept_through = 0;
  while (!has_come() && slept_through == 0) {
    fabric.prepare_sleep();
    if (fabric.poll() > 0 || has_come()) {
      fabric.cancel_sleep();
      continue;
    }
    const std::uint64_t started = steady_now_ns();
    fabric.sleep(kLongNs);
    if (steady_now_ns() - started >= kLongNs) ++slept_through;
    fabric.poll();
  }
  return slept_through;
}

/// The other nodes act, and then keep polling until told to stop.
class Actor {
 public:
  Actor(const Arrival& arrival, std::atomic<bool>& go)
      : thread_([this, &arrival, &go](const std::stop_token& stop) {
          while (!go && !stop.stop_requested()) std::this_thread::yield();
          arrival.act();
          acted_ = true;
          while (!stop.stop_requested()) {
            arrival.others_poll();
            std::this_thread::yield();
          }
        }) {}
  void wait_until_acted() const {
    while (!acted_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> acted_{false};
  std::jthread thread_;
};

int slept_through(Fabric& sleeper, const Arrival& arrival, Moment moment) {
  std::atomic<bool> go{moment == Moment::before_prepare};
  const Actor actor(arrival, go);
  if (moment == Moment::before_prepare) actor.wait_until_acted();
  sleeper.prepare_sleep();
  const bool nothing_yet = sleeper.poll() == 0 && !arrival.has_come();
  if (moment == Moment::before_sleep) {
    go = true;
    actor.wait_until_acted();
  }
  int failures = 0;
  if (nothing_yet) {
    const std::uint64_t started = steady_now_ns();
    go = true;
    sleeper.sleep(kLongNs);
    if (steady_now_ns() - started >= kLongNs) ++failures;
    sleeper.poll();
  } else {
    sleeper.cancel_sleep();
  }
  go = true;
  return failures + sleep_until(sleeper, arrival.has_come);
}

}  // namespace

#define SKIP_IF_SIMULATED() \
  if (!GetParam().join) GTEST_SKIP() << "a simulated node does not sleep"

/// By TCP-T3 a socket ends a sleep, and by MIX-B4 both parts of the mixed fabric do.
TEST_P(Waiting, IsEndedByWhateverAPeerDoesAtAnyMoment) {
  SKIP_IF_SIMULATED();
  start(2);
  const Shared box = share("box", 64);
  std::uint64_t heard = 0;
  node(0).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  std::uint64_t round = 0;
  RegionId news;
  const auto others_poll = [&] { node(1).poll(); };
  const auto post_all = [&](const Operation& op) {
    while (!node(1).post(op).all()) node(1).poll();
  };
  const auto connected = [&] { return seen(0, Kind::region_connected, 1, news) == 1; };
  const auto withdrawn = [&] { return seen(0, Kind::region_withdrawn, 1, news) == 1; };
  Region announced;
  const Arrival arrivals[] = {
      {"a write", [&] { post_all(write(0, box.id(1), 0, &round, 8)); },
       [&] { return box.load(0, 0) == round; }, others_poll},
      {"a fetch_add", [&] { post_all(fetch_add(0, box.id(1), 8, 1, nullptr)); },
       [&] { return box.load(0, 8) == round; }, others_poll},
      {"a compare_swap",
       [&] { post_all(compare_swap(0, box.id(1), 16, round - 1, round, nullptr)); },
       [&] { return box.load(0, 16) == round; }, others_poll},
      {"a message",
       [&] {
         while (node(1).send(0, 0, {}) != Refusal::none) node(1).poll();
       },
       [&] { return heard == round; }, others_poll},
      {"an announcement",
       [&] {
         announced = node(1).allocate({.name = "news", .bytes = 64, .generation = round});
         node(1).announce(announced);
       },
       connected, others_poll},
      {"a withdrawal", [&] { announced = Region(); }, withdrawn, others_poll},
  };
  for (const Moment moment : {Moment::before_prepare, Moment::before_sleep, Moment::in_sleep}) {
    ++round;
    news = group().allocate(0, {.name = "news", .bytes = 64, .generation = round}).id();
    for (const Arrival& arrival : arrivals) {
      ASSERT_EQ(slept_through(node(0), arrival, moment), 0)
          << arrival.what << " at moment " << static_cast<int>(moment);
    }
  }
}

TEST_P(Waiting, IsEndedByAPeersDeathAtAnyMoment) {
  SKIP_IF_SIMULATED();
  for (const Moment moment : {Moment::before_prepare, Moment::before_sleep, Moment::in_sleep}) {
    start(2);
    const Arrival death{"a death", [&] { group().kill(1); }, [&] { return node(0).failed(1); },
                        [] {}};
    ASSERT_EQ(slept_through(node(0), death, moment), 0) << static_cast<int>(moment);
  }
}

TEST_P(Waiting, MissesNoTurnOfAPingPong) {
  SKIP_IF_SIMULATED();
  constexpr std::uint64_t kRounds = 1'000;
  start(2);
  const Shared box = share("box", 64);
  std::atomic<int> missed{0};
  const auto play = [&](Rank self) {
    std::uint64_t turn = 0;
    for (std::uint64_t round = 1; round <= kRounds && missed == 0; ++round) {
      if (self == 1) missed += sleep_until(node(1), [&] { return box.load(1, 0) == round; });
      turn = round;
      while (!node(self).post(write(1 - self, box.id(self), 0, &turn, 8)).all()) {
        node(self).poll();
      }
      if (self == 0) missed += sleep_until(node(0), [&] { return box.load(0, 0) == round; });
    }
  };
  {
    const std::jthread other([&] { play(1); });
    play(0);
  }
  EXPECT_EQ(missed, 0);
}

TEST_P(Waiting, EndsByItself) {
  SKIP_IF_SIMULATED();
  start(2);
  const std::uint64_t started = steady_now_ns();
  node(0).prepare_sleep();
  node(0).sleep(1'000'000);
  node(0).prepare_sleep();
  node(0).sleep(0);
  node(0).prepare_sleep();
  node(0).cancel_sleep();
  node(0).wake_at(node(0).now_ns() + 1'000'000);
  node(0).prepare_sleep();
  node(0).sleep(kLongNs);
  EXPECT_LT(steady_now_ns() - started, kLongNs);
}

TEST_P(Waiting, IsEndedByWakeFromAnyThread) {
  SKIP_IF_SIMULATED();
  start(2);
  const std::uint64_t started = steady_now_ns();
  node(0).wake();
  node(0).prepare_sleep();
  node(0).sleep(kLongNs);
  for (int round = 0; round < 100; ++round) {
    const std::jthread other([&] { node(0).wake(); });
    node(0).prepare_sleep();
    node(0).sleep(kLongNs);
  }
  EXPECT_LT(steady_now_ns() - started, kLongNs);
}

TEST_P(Waiting, OfAForeignLoopSeesTheDescriptorReadable) {
  SKIP_IF_SIMULATED();
  start(2);
  if (node(0).wait_descriptor() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  const Shared box = share("box", 64);
  std::uint64_t heard = 0;
  node(0).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  constexpr int kLongMs = 30'000;
  const auto readable = [&](int timeout_ms) {
    pollfd waited{.fd = node(0).wait_descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&waited, 1, timeout_ms) == 1;
  };
  for (std::uint64_t round = 1; round <= 20; ++round) {
    until("there is nothing to poll for", [&] {
      node(0).prepare_sleep();
      if (!readable(0)) return true;
      node(0).cancel_sleep();
      return false;
    });
    if (round % 2 == 0) {
      ASSERT_TRUE(node(1).post(write(0, box.id(1), 0, &round, 8)).all());
    } else {
      ASSERT_EQ(node(1).send(0, 0, {}), Refusal::none);
    }
    node(1).poll();
    EXPECT_TRUE(readable(kLongMs));
    node(0).cancel_sleep();
  }
  until("all has arrived", [&] { return heard == 10 && box.load(0, 0) == 20; });
}

}  // namespace dunlin::conformance
