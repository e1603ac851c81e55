#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "table/sim_group.hpp"

/// Tables whose nodes pull the others' rows (Refresh::reads): how often, and what of a full queue.
/// That nothing is torn or goes back is tested with the rest (order_test.cpp, shm_hammer_test.cpp).
namespace dunlin {
namespace {

using test::SimGroup;

struct ReadRow {
  Cell<std::uint64_t> time_ns;  // when its owner last wrote it
};

/// The ages of what node 0 sees of node 1, each time that it sees something new.
class Watched {
 public:
  Watched(std::uint64_t interval_us, std::uint64_t late_ns, const sim::Profile& profile)
      : group_(3, profile) {
    const TableOptions options{.refresh = Refresh::reads, .refresh_interval_us = interval_us};
    group_.make(0, options);
    group_.make(1, options);
    group_.world.attach(1, [this] {
      group_[1].mine().time_ns = group_.world.now_ns();
      return 1;  // it writes all the time
    });
    group_.world.at(late_ns, [this, options] { group_.make(2, options); });
    std::uint64_t last_ns = 0;
    EXPECT_TRUE(group_.run_until([&] {
      const std::uint64_t seen_ns = group_[0][1].time_ns;
      if (seen_ns != last_ns) times_ns_.push_back(group_.world.now_ns());
      last_ns = seen_ns;
      return group_.world.now_ns() > 2'000'000;
    }));
  }
  /// The least and the longest time between two refreshes.
  [[nodiscard]] std::uint64_t least_gap_ns() const { return gap(std::less<>{}); }
  [[nodiscard]] std::uint64_t longest_gap_ns() const { return gap(std::greater<>{}); }
  [[nodiscard]] std::size_t refreshes() const { return times_ns_.size(); }

 private:
  template <class Before>
  [[nodiscard]] std::uint64_t gap(Before before) const {
    std::uint64_t found = times_ns_.at(2) - times_ns_.at(1);
    for (std::size_t i = 2; i < times_ns_.size(); ++i) {
      const std::uint64_t gap_ns = times_ns_[i] - times_ns_[i - 1];
      if (before(gap_ns, found)) found = gap_ns;
    }
    return found;
  }
  SimGroup<ReadRow> group_;
  std::vector<std::uint64_t> times_ns_;
};

TEST(Reads, WithoutAnIntervalFollowEachOther) {
  const Watched watched(0, 30'000, sim::profile("ideal"));
  EXPECT_LE(watched.longest_gap_ns(), 3'000U) << "a round trip is 2,000 ns";
}

TEST(Reads, KeepTheirIntervalWhateverThePhaseOfTheOtherRows) {
  const Watched watched(50, 30'000, sim::profile("ideal"));
  EXPECT_GE(watched.least_gap_ns(), 49'000U);
  EXPECT_LE(watched.longest_gap_ns(), 52'000U);
  EXPECT_GE(watched.refreshes(), 38U);
}

TEST(Reads, GoOnThoughQueuesAreFull) {
  sim::Profile narrow = test::rough_network();
  narrow.queue_slots = 1;
  const Watched watched(0, 30'000, narrow);
  EXPECT_GE(watched.refreshes(), 50U);
}

}  // namespace
}  // namespace dunlin
