#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/join.hpp>

#include "support/fresh_group.hpp"
#include "support/hosts.hpp"
#include "support/node_backend.hpp"

/// Members on three hosts, whose cables are pulled, plugged in again, slow, or lose frames.
namespace dunlin {
namespace {

using test::fresh_group;
using test::Hosts;
using test::kPatienceMs;

constexpr std::uint32_t kMembers = 3;
constexpr std::size_t kWords = 512;
constexpr std::uint32_t kSoonMs = 1'000;

/// A member on a host of its own: its thread polls, and does what it is asked to.
class Member {
 public:
  Member(const Hosts& hosts, Rank rank, const std::string& group, std::uint32_t silence_timeout_ms)
      : thread_([&hosts, rank, group, silence_timeout_ms, this] {
          hosts.enter(rank);
          live({.network = "ofi",
                .group = group,
                .members = kMembers,
                .rank = rank,
                .timeout_ms = kPatienceMs,
                .silence_timeout_ms = silence_timeout_ms,
                .rendezvous = Hosts::address(0) + ":7700",  // in a namespace of this test's own
                .secret = "only these tests know it"});
        }) {}

  /// Runs in the member's thread; returns when it has run.
  void ask(const std::function<void(Fabric&, RegionId)>& task) {
    std::atomic<bool> done{false};
    {
      const std::lock_guard lock(mutex_);
      task_ = [&](Fabric& fabric, RegionId box) {
        task(fabric, box);
        done = true;
      };
    }
    while (!done) std::this_thread::yield();
  }
  /// Posts it, and returns whether its completion then failed.
  bool fails(const std::function<Operation(RegionId)>& operation) {
    bool failed = false;
    ask([&](Fabric& fabric, RegionId box) {
      Completion placed;
      EXPECT_TRUE(fabric.post(operation(box).notify(placed, Notify::remotely)).all());
      while (!placed.finished()) poll(fabric);
      failed = placed.failed();
    });
    return failed;
  }

  [[nodiscard]] std::uint32_t failures_of(Rank peer) const { return failures_.at(peer); }
  void wait_until(const std::function<bool(const Fabric&, const Region&)>& condition) {
    for (bool holds = false; !holds;)
      ask([&](Fabric& fabric, RegionId) { holds = condition(fabric, *box_); });
  }
  void wait_until_failed(Rank peer) {
    while (failures_of(peer) == 0) std::this_thread::yield();
  }

 private:
  static void poll(Fabric& fabric) {
    if (fabric.poll() == 0) std::this_thread::yield();
  }

  void live(const JoinOptions& options) {
    const auto fabric = join(options);
    const Subscription heard = fabric->subscribe([this](const Event& event) {
      if (event.kind == Event::Kind::peer_failed) ++failures_.at(event.peer);
    });
    const Region box = fabric->allocate({.name = "box", .bytes = kWords * 8});
    fabric->announce(box);
    box_ = &box;
    for (Rank peer = 0; peer < kMembers; ++peer)
      while (!fabric->connected(peer, box.id())) poll(*fabric);
    while (!leave_) {
      poll(*fabric);
      std::function<void(Fabric&, RegionId)> task;
      {
        const std::lock_guard lock(mutex_);
        task.swap(task_);
      }
      if (task) task(*fabric, box.id());
    }
  }

  std::mutex mutex_;
  std::function<void(Fabric&, RegionId)> task_;
  const Region* box_ = nullptr;
  std::array<std::atomic<std::uint32_t>, kMembers> failures_{};
  std::atomic<bool> leave_{false};
  std::jthread thread_;

 public:
  ~Member() { leave_ = true; }
};

std::uint64_t word(const Region& box, std::size_t index) {
  return memory::load(reinterpret_cast<const std::uint64_t*>(box.memory().data())[index]);
}

class HostFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
    if (devices_of("ofi").empty()) GTEST_SKIP() << "there is no libfabric";
    hosts = std::make_unique<Hosts>(kMembers);
  }

  void start(std::uint32_t silence_timeout_ms) {
    const std::string group = fresh_group();
    for (Rank rank = 0; rank < kMembers; ++rank)
      members.push_back(std::make_unique<Member>(*hosts, rank, group, silence_timeout_ms));
    for (Rank from = 0; from < kMembers; ++from)
      for (Rank to = 0; to < kMembers; ++to) expect_to_reach(from, to);
  }

  void expect_to_reach(Rank from, Rank to) {
    const std::uint64_t value = ++last_value_;
    const std::size_t index = from * kMembers + to;
    members[from]->ask([&](Fabric& fabric, RegionId box) {
      EXPECT_TRUE(fabric.post(write(to, box, index * 8, &value, 8)).all());
    });
    members[to]->wait_until(
        [&](const Fabric&, const Region& box) { return word(box, index) == value; });
  }

  std::unique_ptr<Hosts> hosts;
  std::vector<std::unique_ptr<Member>> members;

 private:
  std::uint64_t last_value_ = 0;
};

TEST_F(HostFaults, AnUnpluggedHostFailsOnceOnBothSidesAndTheOthersGoOn) {
  start(kSoonMs);
  hosts->cut(2);
  const std::uint64_t value = 1;
  EXPECT_TRUE(members[0]->fails([&](RegionId box) { return write(2, box, 0, &value, 8); }));
  EXPECT_TRUE(members[2]->fails([&](RegionId box) { return write(1, box, 0, &value, 8); }));
  members[0]->wait_until_failed(2);
  members[1]->wait_until_failed(2);
  members[2]->wait_until_failed(0);
  members[2]->wait_until_failed(1);
  expect_to_reach(0, 1);
  expect_to_reach(1, 0);
  hosts->heal(2);
  EXPECT_TRUE(members[1]->fails([&](RegionId box) { return fetch_add(2, box, 0, 1, nullptr); }))
      << "who has failed stays failed";
  for (int i = 0; i < 100; ++i) expect_to_reach(0, 1);
  EXPECT_EQ(members[0]->failures_of(2), 1U);
  EXPECT_EQ(members[1]->failures_of(2), 1U);
  EXPECT_EQ(members[2]->failures_of(0), 1U);
  EXPECT_EQ(members[2]->failures_of(1), 1U);
  EXPECT_EQ(members[0]->failures_of(1), 0U);
  EXPECT_EQ(members[1]->failures_of(0), 0U);
}

TEST_F(HostFaults, ACableThatIsPluggedInAgainInTimeLosesNothing) {
  start(kPatienceMs);
  constexpr std::uint64_t kCount = 200;
  hosts->cut(1);
  members[0]->ask([&](Fabric& fabric, RegionId box) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::uint64_t value = i + 1;
      EXPECT_TRUE(fabric.post(write(1, box, (100 + i) * 8, &value, 8)).all());
      EXPECT_TRUE(fabric.post(fetch_add(1, box, 99 * 8, 1, nullptr)).all());
    }
  });
  hosts->heal(1);
  members[1]->wait_until([&](const Fabric&, const Region& box) {
    const std::uint64_t count = word(box, 99);
    for (std::uint64_t i = 0; i < count; ++i)
      EXPECT_EQ(word(box, 100 + i), i + 1) << "put, then signal";
    return count == kCount;
  });
  for (Rank peer = 0; peer < kMembers; ++peer) EXPECT_EQ(members[0]->failures_of(peer), 0U);
}

TEST_F(HostFaults, AOneWayCutFailsBothSidesOnceAndNobodyElse) {
  start(kSoonMs);
  hosts->cut_one_way(2, 0);
  members[0]->wait_until_failed(2);
  members[2]->wait_until_failed(0);
  hosts->heal_one_way(2, 0);
  for (const auto& [from, to] : {std::pair{0U, 1U}, {1U, 0U}, {1U, 2U}, {2U, 1U}})
    for (int i = 0; i < 20; ++i) expect_to_reach(from, to);
  EXPECT_EQ(members[0]->failures_of(2), 1U);
  EXPECT_EQ(members[2]->failures_of(0), 1U);
  EXPECT_EQ(members[1]->failures_of(0) + members[1]->failures_of(2), 0U);
  EXPECT_EQ(members[0]->failures_of(1) + members[2]->failures_of(1), 0U);
}

/// Delay that varies would overtake; TCP must not show it.
TEST_F(HostFaults, DelayAndLossChangeNothingButTheTime) {
  if (!hosts->why_not_impaired().empty()) GTEST_SKIP() << hosts->why_not_impaired();
  start(kPatienceMs);
  for (unsigned host = 0; host < kMembers; ++host) hosts->impair(host, "delay 2ms 1ms loss 2%");
  for (int i = 0; i < 20; ++i)
    for (Rank from = 0; from < kMembers; ++from) expect_to_reach(from, (from + 1) % kMembers);
  for (const auto& member : members)
    for (Rank peer = 0; peer < kMembers; ++peer) EXPECT_EQ(member->failures_of(peer), 0U);
}

}  // namespace
}  // namespace dunlin
