#include "bench/harness/turns.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

TEST(Turns, AreTakenByAllContendersAndTheWarmUpIsDropped) {
  Team team({.processes = 2});
  team.run([](Member& me) {
    std::uint64_t turns = 0;
    const auto turn = [&](std::uint64_t who) -> std::optional<double> {
      if (me.rank() != 0) return std::nullopt;
      return static_cast<double>(turns++ * 10 + who);
    };
    alternate(me, 3, {[&] { return turn(0); }, [&] { return turn(1); }});
  });
  // Turns 0 and 1 were the warm-up; who begins changes from round to round.
  EXPECT_EQ(std::vector(team.series(0).begin(), team.series(0).end()),
            (std::vector<double>{30, 40, 70}));
  EXPECT_EQ(std::vector(team.series(1).begin(), team.series(1).end()),
            (std::vector<double>{21, 51, 61}));
}

}  // namespace
}  // namespace dunlin::bench
