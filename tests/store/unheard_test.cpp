#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"

/// A member that has joined uses the store before others have heard that it is a member. It is not
/// gone: its locks, its memory, its requests and its keys are those of one that is there.
namespace dunlin {
namespace {

using remote::Status;

constexpr std::uint32_t kFounders = 3;
constexpr Rank kLate = kFounders;
constexpr std::uint32_t kAll = kFounders + 1;
constexpr std::uint64_t kLongNs = 1'000'000'000;

/// What is agreed, as far as the test has let this member hear of it.
class HeardMembers final : public remote::Membership {
 public:
  void hear_of(Rank joined) {
    present_.at(joined) = true;
    ++generation_;
  }
  void hear_of_death(Rank dead) {
    present_.at(dead) = false;
    ++generation_;
  }
  [[nodiscard]] std::uint64_t generation() const noexcept override { return generation_; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override {
    return rank < kAll && present_[rank];
  }
  [[nodiscard]] std::uint32_t founders() const noexcept override { return kFounders; }
  [[nodiscard]] std::uint32_t capacity() const noexcept override { return kAll; }
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }

 private:
  std::vector<bool> present_{true, true, true, false};
  std::uint64_t generation_ = 1;
  std::string why_stopped_;
};

struct Node {
  HeardMembers members;
  std::unique_ptr<remote::Progress> progress;
  std::unique_ptr<Store> store;
};

class UnheardMember : public testing::Test {
 protected:
  void start(std::uint32_t homes) {
    end();
    world = std::make_unique<sim::World>(slow(), kAll, 1);
    nodes = std::vector<Node>(kAll);
    StoreOptions options = test::small_store();
    options.expected_keys = 8;
    options.homes = homes;
    for (Rank rank = 0; rank < kAll; ++rank) {
      Node& node = nodes.at(rank);
      if (rank == kLate) node.members.hear_of(kLate);
      node.progress = std::make_unique<remote::Progress>(world->fabric(rank), node.members);
      node.store = std::make_unique<Store>(*node.progress, options);
      world->attach(rank, [progress = node.progress.get()] { return progress->poll(); });
    }
    world->run_for(1'000'000);
  }
  void end() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) world->detach_all(rank);
    for (Node& node : nodes) node.store.reset();
    nodes.clear();
  }
  void TearDown() override { end(); }
  Store& at(Rank rank) { return *nodes.at(rank).store; }
  void hear_of_death(Rank dead, Rank by) {
    nodes.at(by).members.hear_of_death(dead);
    world->on(by, [] {});
  }
  std::string states() {
    std::string text;
    for (const Node& node : nodes) text += "\n" + node.store->describe_moves();
    return text;
  }
  template <class Operation>
  Status end_of(Operation&& operation) {
    EXPECT_TRUE(world->run_until([&] { return operation.finished(); }, kLongNs))
        << "hangs" << states();
    return operation.status();
  }
  void put(Rank by, std::string_view key, std::string_view value) {
    EXPECT_EQ(remote::describe(end_of(at(by).put(key, value))), "done") << key;
  }
  std::string get(Rank by, std::string_view key) {
    auto get = at(by).get(key);
    EXPECT_EQ(remote::describe(end_of(get)), "done") << key;
    return get.found() ? std::string(get.text()) : "-";
  }
  static sim::Profile slow() {
    sim::Profile profile = sim::profile("ib100");
    profile.bandwidth_bytes_per_ns = 0.1;
    return profile;
  }
  std::unique_ptr<sim::World> world;
  std::vector<Node> nodes;
};

TEST_F(UnheardMember, KeepsItsLockWhenTheMembersChange) {
  std::uint64_t amid = 0;
  for (std::uint64_t moment = 1'000; moment < 60'000; moment += 1'000) {
    SCOPED_TRACE(moment);
    start(1);
    const std::string before(1'000, 'b'), after(1'000, 'a');
    put(1, "key", before);
    auto change = at(kLate).put("key", after);
    world->run_for(moment);
    amid += change.finished() ? 0 : 1;
    hear_of_death(2, 0);  // and of the one that has come, later
    world->run_for(100'000);
    EXPECT_EQ(at(0).counters().at("repaired_locks"), 0U) << "its lock is taken for a dead member's";
    EXPECT_EQ(remote::describe(end_of(change)), "done");
    EXPECT_EQ(get(1, "key"), after);
    if (HasFailure()) return;
  }
  EXPECT_GT(amid, 10U);
}

TEST_F(UnheardMember, KeepsItsSlabWhenTheMembersChange) {
  start(1);
  put(kLate, "first", "late");
  hear_of_death(2, 0);
  world->run_for(1'000'000);
  for (int key = 0; key < 100; ++key) {
    put(0, "home " + std::to_string(key), "home");
    put(kLate, "late " + std::to_string(key), "late");
  }
  for (int key = 0; key < 100; ++key) {
    EXPECT_EQ(get(1, "home " + std::to_string(key)), "home") << "two members have used one block";
    EXPECT_EQ(get(1, "late " + std::to_string(key)), "late") << "two members have used one block";
  }
}

/// Ranks are given in order, so who is below one that has come has come before, or never does.
TEST_F(UnheardMember, IsNoLongerWaitedForOnceItIsGone) {
  world = std::make_unique<sim::World>(slow(), kAll, 1);
  HeardMembers members;
  remote::Progress progress(world->fabric(0), members);
  EXPECT_FALSE(progress.is_gone(kLate));
  EXPECT_FALSE(progress.contains(kLate));
  members.hear_of(kLate);
  progress.poll();
  EXPECT_TRUE(progress.contains(kLate));
  EXPECT_FALSE(progress.is_gone(kLate));
  members.hear_of_death(kLate);
  progress.poll();
  EXPECT_TRUE(progress.is_gone(kLate));
  EXPECT_TRUE(progress.is_gone(kAll)) << "there is no such rank";
}

}  // namespace
}  // namespace dunlin
