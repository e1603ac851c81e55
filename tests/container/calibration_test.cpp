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
}

}  // namespace
}  // namespace dunlin
