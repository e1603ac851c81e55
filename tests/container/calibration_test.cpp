#include <atomic>
#include <thread>

#include <dunlin/error.hpp>

#include "container/clusters.hpp"

namespace dunlin {
namespace {

/// The members have threads of their own: a measurement waits.
struct Calibrations : test::OnBackends {};
/// Where round trips need no processor of the target: others' turns would be measured.
DUNLIN_RUN_ON(test::backends_of({"Shm", "Rdma"}), Calibrations);

TEST_P(Calibrations, MeasureEachComponent) {
  const std::string group = test::fresh_group();
  std::atomic<bool> over = false;
  ComponentCosts costs;
  double shared_ns = 0;
  const auto member = [&](Rank rank) {
    const auto fabric = GetParam().join({.group = group, .nodes = 2, .rank = rank});
    Containers containers(*fabric);
    Calibration calibration(containers);
    if (rank == 0) {
      EXPECT_THROW(static_cast<void>(calibration.measure(0)), Error);
      costs = calibration.measure(1, 4);
      shared_ns = calibration.measure_shared_word(1, 4);
      over = true;
    }
    while (!over)
      if (containers.poll() == 0) std::this_thread::yield();
  };
  {
    std::jthread other(member, 1);
    member(0);
  }
  EXPECT_TRUE(costs.measured());
  for (const double ns : {costs.read_ns, costs.write_ns, costs.compare_swap_ns, costs.fetch_add_ns,
                          costs.message_ns, shared_ns})
    EXPECT_GT(ns, 0);
  for (const double ns : {costs.byte_ns, costs.message_byte_ns, costs.batched_ns}) EXPECT_GE(ns, 0);
  for (std::size_t call = 0; call < kCalls; ++call) {
    EXPECT_GE(costs.computing_ns.at(call), 0);
    EXPECT_GE(costs.far_ns.at(call), 0);
  }
}

/// The first one has founded the group.
class OneFounder final : public remote::Membership {
 public:
  [[nodiscard]] std::uint64_t generation() const noexcept override { return 1; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override { return rank < 2; }
  [[nodiscard]] std::uint32_t founders() const noexcept override { return 1; }
  [[nodiscard]] std::uint32_t capacity() const noexcept override { return 2; }
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return none_; }

 private:
  std::string none_;
};

/// A later member has no part of the map.
TEST_P(Calibrations, MeasureTheOperationsAtALaterMember) {
  const std::string group = test::fresh_group();
  std::atomic<bool> over = false;
  ComponentCosts costs;
  const auto member = [&](Rank rank) {
    const auto fabric = GetParam().join({.group = group, .nodes = 2, .rank = rank});
    OneFounder members;
    remote::Progress progress(*fabric, members);
    Containers containers(progress);
    Calibration calibration(containers);
    if (rank == 0) {
      costs = calibration.measure(1, 4);
      over = true;
    }
    while (!over)
      if (containers.poll() == 0) std::this_thread::yield();
  };
  {
    std::jthread other(member, 1);
    member(0);
  }
  EXPECT_TRUE(costs.measured());
  EXPECT_EQ(costs.computing_ns, (std::array<double, kCalls>()));
}

constexpr ComponentCosts kOfOperations{
    .read_ns = 6, .write_ns = 5, .compare_swap_ns = 9, .message_ns = 500};

TEST(CostModel, AddsTheComputingOfACallAndWhatASlotInNoCacheTakesMore) {
  ComponentCosts costs = kOfOperations;
  costs.computing_ns.at(static_cast<std::size_t>(Call::find)) = 7;
  costs.far_ns.at(static_cast<std::size_t>(Call::find)) = 100;
  const Situation near{.load = 0, .bytes = 8, .used_lately = true};
  const Situation far{.load = 0, .bytes = 8};
  EXPECT_DOUBLE_EQ(predict_ns(costs, Call::find, Style::one_sided, near), 6 + 7);
  EXPECT_DOUBLE_EQ(predict_ns(costs, Call::find, Style::one_sided, far), 6 + 7 + 100);
  EXPECT_DOUBLE_EQ(predict_ns(costs, Call::find, Style::message, near), 500);
  EXPECT_DOUBLE_EQ(predict_ns(costs, Call::find, Style::message, far), 500 + 100);
}

TEST(CostModel, PredictsCallsByTheirOperationsWhereNothingElseIsMeasured) {
  const Situation far{.load = 0, .bytes = 8};
  EXPECT_DOUBLE_EQ(predict_ns(kOfOperations, Call::erase, Style::one_sided, far), 6 + 9);
  EXPECT_EQ(explain(kOfOperations, Call::erase, Style::one_sided, far).size(), 2U);
}

}  // namespace
}  // namespace dunlin
