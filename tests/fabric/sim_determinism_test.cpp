#include <array>
#include <set>
#include <vector>

#include "fabric/sim_world.hpp"

/// A run is a pure function of profile, nodes, seed and program.
namespace dunlin::sim {
namespace {

/// Some traffic of all kinds with a crash in it.
std::uint64_t digest_of_a_run(const Profile& figures, std::uint64_t seed, std::uint64_t value = 1) {
  TestWorld t(figures, 4, seed);
  std::array<std::uint64_t, 64> block{};
  block.fill(value);
  std::array<std::uint64_t, 4> here{};
  std::array<Completion, 4> done;
  std::array<std::uint64_t, 4> rounds{};
  for (Rank r = 0; r < 4; ++r) {
    t.world.attach(r, [&, r]() -> std::size_t {
      if (!done[r].finished() || rounds[r] == 30) return 0;
      const auto peer = static_cast<Rank>(t.world.random() % 4);
      ++rounds[r];
      const std::array<Operation, 3> batch{
          put(peer, t.id(r), 64, block.data(), 512), write(peer, t.id(r), 0, &rounds[r], 8),
          fetch_add(peer, t.id(r), 8, value, &here[r]).notify(done[r])};
      return t.world.fabric(r).post(batch).accepted;
    });
  }
  t.world.at(40'000, [&] { t.world.crash(3); });
  t.world.run_for(10'000'000);
  return t.world.digest();
}

TEST(SimDeterminism, TheSameSeedGivesTheSameRun) {
  for (const Profile& figures : profiles())
    EXPECT_EQ(digest_of_a_run(figures, 5), digest_of_a_run(figures, 5)) << figures.name;
}

TEST(SimDeterminism, EachSeedGivesAnotherRun) {
  std::set<std::uint64_t> digests;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    digests.insert(digest_of_a_run(profile("ib100"), seed));
  EXPECT_EQ(digests.size(), 20U);
}

TEST(SimDeterminism, AnotherProgramGivesAnotherRun) {
  EXPECT_NE(digest_of_a_run(profile("ib100"), 5, 1), digest_of_a_run(profile("ib100"), 5, 2));
}

TEST(SimDeterminism, AProgramsDrawsDoNotChangeTheNetwork) {
  const auto arrival = [](int draws) {
    TestWorld t(profile("ib100"), 2, 9);
    t.settle();
    for (int i = 0; i < draws; ++i) (void)t.world.random();
    const std::uint64_t one = 1;
    t.post(0, write(1, t.id(0), 0, &one, 8));
    return t.time_until([&] { return t.load(1) == 1; });
  };
  EXPECT_EQ(arrival(0), arrival(5));
}

TEST(SimDeterminism, DrawsArePartOfTheReplay) {
  World one(plain(), 1, 3);
  World two(plain(), 1, 3);
  World other(plain(), 1, 4);
  const std::uint64_t drawn = one.random();
  EXPECT_EQ(drawn, two.random());
  EXPECT_NE(drawn, other.random());
  EXPECT_NE(drawn, one.random());
}

}  // namespace
}  // namespace dunlin::sim
