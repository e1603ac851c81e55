#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "group/control_channel.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// The groups of one fabric, each with a multicast of the same name: their messages, orders and
/// views have nothing to do with each other (GRP-F1 to GRP-F4).
namespace dunlin {
namespace {

using multicast::Delivery;
using multicast::SendResult;
using test::kPatienceMs;

struct Content {
  std::uint32_t group;
  Rank sender;
  std::uint64_t count;
  friend bool operator==(const Content&, const Content&) = default;
};

/// A group of the fabric, and what its multicast delivered here.
class Part {
 public:
  Part(Fabric& fabric, std::uint32_t number, std::optional<FurtherGroup> further)
      : fabric_(fabric),
        number_(number),
        group_(std::make_unique<Group>(fabric, GroupOptions{.subgroups = {{.name = "orders"}},
                                                            .further = std::move(further)})),
        orders_(
            std::make_unique<Multicast>(*group_, "orders", MulticastOptions{.ring_bytes = 4096})) {
    group_->on_view([this](const View& view) { views.push_back(view); });
    orders_->on_delivery([this](std::span<const Delivery> batch) {
      for (const Delivery& delivery : batch) {
        Content content{};
        ASSERT_EQ(delivery.message.size(), sizeof content);
        std::memcpy(&content, delivery.message.data(), sizeof content);
        ASSERT_EQ(content.group, number_) << "a message of the other group";
        heard.push_back(content);
      }
    });
  }

  bool send() {
    const Content content{.group = number_, .sender = fabric_.rank(), .count = sent};
    if (orders_->send(std::as_bytes(std::span(&content, 1))) != SendResult::sent) return false;
    ++sent;
    return true;
  }
  std::size_t poll() {
    std::size_t done = group_ ? group_->poll() : 0;
    while (group_ && sent < goal && send()) ++done;
    return done;
  }
  void destroy() {
    orders_.reset();
    group_.reset();
  }
  [[nodiscard]] Group* group() noexcept { return group_.get(); }
  [[nodiscard]] std::size_t heard_of(Rank sender) const {
    return static_cast<std::size_t>(std::ranges::count(heard, sender, &Content::sender));
  }

  std::uint64_t goal = 0;
  std::uint64_t sent = 0;
  std::vector<View> views;
  std::vector<Content> heard;

 private:
  Fabric& fabric_;
  std::uint32_t number_;
  std::unique_ptr<Group> group_;
  std::unique_ptr<Multicast> orders_;
};

FurtherGroup further_of(const Fabric& fabric, const std::vector<Rank>& ranks) {
  FurtherGroup further{.name = "control", .members = {}, .channel = 9};
  for (const Rank rank : ranks) further.members.push_back(group::name_on(fabric, rank));
  return further;
}

// --- threads, on every backend -------------------------------------------------------------------

struct TwoGroups : test::OnBackends {};

DUNLIN_RUN_ON(test::backends(), TwoGroups);

TEST_P(TwoGroups, ShareOneFabric) {
  static constexpr std::uint32_t kMembers = 3;
  static constexpr std::uint64_t kMessages = 400;
  const std::string name = test::fresh_group();
  std::array<std::array<std::vector<Content>, 2>, kMembers> heard;
  std::atomic<std::uint32_t> done{0};
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = GetParam().join({.group = name, .nodes = kMembers, .rank = rank});
      Part own(*fabric, 0, std::nullopt);
      Part further(*fabric, 1, further_of(*fabric, {2, 0, 1}));
      own.goal = further.goal = kMessages;
      Loop loop(*fabric);
      loop.add(own).add(further);
      EXPECT_TRUE(loop.run_until(
          [&] {
            return own.heard.size() >= kMembers * kMessages &&
                   further.heard.size() >= kMembers * kMessages;
          },
          kPatienceMs));
      // One of them leaves the further group, and goes on in the fabric's own.
      if (rank == 1) further.group()->leave();
      EXPECT_TRUE(loop.run_until(
          [&] {
            return rank == 1 ? further.group()->ended()
                             : further.group()->view().members.size() == kMembers - 1;
          },
          kPatienceMs));
      own.goal += kMessages;
      if (rank != 1) further.goal += kMessages;
      EXPECT_TRUE(loop.run_until(
          [&] {
            return own.heard.size() == 2 * kMembers * kMessages &&
                   (rank == 1 || further.heard.size() == (kMembers + kMembers - 1) * kMessages);
          },
          kPatienceMs));
      EXPECT_EQ(own.group()->view().number, 1U);
      heard[rank] = {own.heard, further.heard};
      ++done;
      EXPECT_TRUE(loop.run_until([&] { return done == kMembers; }, kPatienceMs));
    });
  }
  threads.clear();
  for (const Rank rank : {1U, 2U}) EXPECT_EQ(heard[rank][0], heard[0][0]);
  EXPECT_EQ(heard[2][1], heard[0][1]);
  EXPECT_TRUE(std::ranges::equal(heard[1][1], std::span(heard[0][1]).first(heard[1][1].size())));
}

// --- simulated, with faults ----------------------------------------------------------------------

constexpr std::uint32_t kNodes = 5;
const std::vector<Rank> kInFurther{3, 0, 1, 4};

struct Scenario {
  explicit Scenario(std::uint64_t seed)
      : world(sim::profile("ib100"), kNodes, seed), random(seed * 7919 + 1) {
    for (Rank rank = 0; rank < kNodes; ++rank) {
      own.push_back(std::make_unique<Part>(world.fabric(rank), 0, std::nullopt));
      further.push_back(std::ranges::find(kInFurther, rank) == kInFurther.end()
                            ? nullptr
                            : std::make_unique<Part>(world.fabric(rank), 1,
                                                     further_of(world.fabric(rank), kInFurther)));
      world.attach(rank, [this, rank] {
        return own[rank]->poll() + (further[rank] ? further[rank]->poll() : 0);
      });
    }
  }

  [[nodiscard]] bool is_further(Rank rank) const { return further[rank] != nullptr; }
  void set_goals(std::uint64_t goal) {
    for (Rank rank = 0; rank < kNodes; ++rank) {
      own[rank]->goal = goal;
      if (is_further(rank)) further[rank]->goal = goal;
    }
  }
  /// Those that go on in a group have the view of just these, and all messages of each other.
  [[nodiscard]] bool complete(const std::vector<std::unique_ptr<Part>>& parts,
                              const std::vector<Rank>& left, std::uint64_t goal) const {
    return std::ranges::all_of(left, [&](Rank rank) {
      const Part& part = *parts[rank];
      return !part.views.empty() && part.views.back().ranks == left && part.sent == goal &&
             std::ranges::all_of(left, [&](Rank sender) { return part.heard_of(sender) == goal; });
    });
  }

  sim::World world;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Part>> own, further;
};

/// One member is lost to the further group, and perhaps to the fabric; what is left has a quorum.
void run_seed(std::uint64_t seed) {
  Scenario scenario(seed);
  sim::World& world = scenario.world;
  std::vector<Rank> left{0, 1, 2, 3, 4};
  std::vector<Rank> further_left = kInFurther;
  const std::uint64_t goal = 20 + scenario.random() % 100;
  scenario.set_goals(goal);
  for (Rank rank = 0; rank < kNodes; ++rank) world.on(rank, [] {});
  world.run_for(scenario.random() % 60'000);
  const Rank victim = kInFurther[scenario.random() % kInFurther.size()];
  std::erase(further_left, victim);
  switch (scenario.random() % 5) {
    case 0:
      world.crash(victim);
      std::erase(left, victim);
      break;
    case 1:
      world.on(victim, [&] { scenario.own[victim]->group()->leave(); });
      std::erase(left, victim);
      break;
    case 2:
      world.on(victim, [&] { scenario.further[victim]->destroy(); });
      break;
    default:
      world.on(victim, [&] { scenario.further[victim]->group()->leave(); });
      break;
  }
  if (scenario.random() % 2 == 0) world.pause(left[scenario.random() % left.size()], 200'000);
  const bool done = world.run_until(
      [&] {
        return testing::Test::HasFatalFailure() ||
               (scenario.complete(scenario.own, left, goal) &&
                scenario.complete(scenario.further, further_left, goal));
      },
      2'000'000'000);
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  ASSERT_TRUE(done) << "without " << victim << ": " << scenario.own[left[0]]->group()->why_ended()
                    << scenario.further[further_left[0]]->group()->why_ended();
  for (const Rank rank : left)
    ASSERT_EQ(scenario.own[rank]->heard, scenario.own[left[0]]->heard) << rank;
  for (const Rank rank : further_left)
    ASSERT_EQ(scenario.further[rank]->heard, scenario.further[further_left[0]]->heard) << rank;
}

TEST(TwoGroupsInSimulator, GoTheirOwnWays) {
  test::for_each_seed(test::Seeds(test::rounds(300)),
                      [&](std::uint64_t seed) { ASSERT_NO_FATAL_FAILURE(run_seed(seed)); });
}

}  // namespace
}  // namespace dunlin
