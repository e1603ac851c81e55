#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/traffic.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Slots move to a member, away from another one and back to it, while some links are slow: members
/// learn of a decision late, or what they began before it lands after it.
namespace dunlin {
namespace {

using test::Traffic;

constexpr Rank kHolders = 4;  // and a client
constexpr std::size_t kKeys = 25;
constexpr std::uint64_t kPatienceNs = 1'000'000'000;

struct SlowLinks : test::Mortals {
  explicit SlowLinks(test::Draws draws)
      : Mortals(kHolders + 1, kHolders, network_of(draws), options_of(draws)),
        traffic(
            world, [this](Rank rank) -> Store& { return at(rank); }, {0, 1, 2, 3, 4}, kKeys) {
    move(3, 0);
    for (std::uint32_t links = 1 + draws.below(3); links > 0; --links) {
      const Rank from = draws.below(kHolders + 1);
      const Rank to = (from + 1 + draws.below(kHolders)) % (kHolders + 1);
      world.slow_link(from, to, 50 + draws.below(500));
    }
  }
  static sim::Profile network_of(test::Draws& draws) {
    sim::Profile network = draws.below(3) == 0 ? shuffling() : Mortals::network();
    if (draws.below(2) == 0) network.queue_slots = 2;
    network.silence_timeout_ns = 20'000'000;
    return network;
  }
  static StoreOptions options_of(test::Draws& draws) {
    StoreOptions options = test::two_copies();
    options.copies = 1 + draws.below(2);
    options.slots = 8U << draws.below(4);
    options.cache_bytes = draws.below(2) == 0 ? 0 : 4096;
    return options;
  }
  /// Amid the traffic.
  void move(Rank rank, std::uint32_t weight) {
    SCOPED_TRACE("member " + std::to_string(rank) + " gets weight " + std::to_string(weight));
    auto settle = std::make_unique<StoreOperation>();
    world.on(rank, [&] {
      at(rank).set_weight(weight);
      at(rank).settle(*settle);
      has_begun = true;
    });
    const auto has_ended = [&] { return has_begun && settle->finished(); };
    ASSERT_TRUE(traffic.run_until(has_ended, kPatienceNs)) << "it hangs\n" << states();
    has_begun = false;
    EXPECT_EQ(remote::describe(settle->status()), "done");
  }
  void run() {
    move(3, 4);
    move(1, 0);
    EXPECT_EQ(keys_at(1), 0U) << "STO-P13: it has keys of slots that it does not hold";
    move(1, 4);
    move(2, 0);
    EXPECT_EQ(keys_at(2), 0U) << "STO-P13: it has keys of slots that it does not hold";
    traffic.stop();
    for (Rank by = 0; by <= kHolders; ++by) traffic.read_all(by);
    EXPECT_EQ(count(4), traffic.present()) << "STO-P13";
    if (options.copies == 1) return;
    world.crash(1);
    traffic.forget(1);
    for (const Rank by : {Rank{0}, Rank{4}}) traffic.read_all(by);
  }

  Traffic traffic;
  bool has_begun = false;
};

const std::uint64_t kSeeds = test::rounds(4);

TEST(StoreSlowLinksInSimulator, LateNewsOfMovesLosesAndDoublesNoKey) {
  test::for_each_seed(test::Seeds(kSeeds),
                      [](std::uint64_t seed) { SlowLinks(test::Draws(seed)).run(); });
}

}  // namespace
}  // namespace dunlin
