#include "multicast/order.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/rounds.hpp"

/// The arithmetic, against what it means: number by number.
namespace dunlin::multicast::order {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// Turns taken by each sender, which of them are records, and what is known of them: `real` is one
/// behind the last record.
struct World {
  explicit World(std::mt19937_64& random) : records(1 + random() % 5) {
    for (auto& of_one : records) {
      for (std::uint64_t slots = random() % 9; slots > 0; --slots)
        of_one.push_back(random() % 2 == 0);
      taken.push_back(of_one.size());
      const auto last = std::find(of_one.rbegin(), of_one.rend(), true);
      real.push_back(static_cast<std::uint64_t>(of_one.rend() - last));
    }
  }
  [[nodiscard]] std::size_t senders() const { return records.size(); }

  std::vector<std::vector<bool>> records;
  Numbers taken;
  Numbers real;
};

template <class Check>
void for_many_worlds(Check check) {
  for (std::uint64_t seed = 0; seed < test::rounds(3'000); ++seed) {
    std::mt19937_64 random(seed);
    World world(random);
    check(world, random);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

TEST(Order, CountsSlotsBelowANumber) {
  for (std::size_t senders = 1; senders < 7; ++senders) {
    for (std::size_t s = 0; s < senders; ++s) {
      std::uint64_t slots = 0;
      for (std::uint64_t sequence = 0; sequence < 100; ++sequence) {
        ASSERT_EQ(slots_below(sequence, s, senders), slots);
        if (sequence == sequence_of(slots, s, senders)) ++slots;
      }
    }
  }
}

TEST(Order, ReceivedIsTheLowestNumberThatIsNotThere) {
  for_many_worlds([](const World& world, auto&) {
    std::uint64_t lowest = 0;
    while (lowest / world.senders() < world.taken[lowest % world.senders()]) ++lowest;
    EXPECT_EQ(received(world.taken), lowest);
  });
}

TEST(Order, SlotsAreDueForAllMessagesOfOthers) {
  for_many_worlds([](const World& world, auto& random) {
    const std::size_t me = random() % world.senders();
    std::uint64_t due = 0;
    for (std::size_t s = 0; s < world.senders(); ++s) {
      if (s == me) continue;
      for (std::uint64_t slot = 0; slot < world.taken[s]; ++slot) {
        if (!world.records[s][slot]) continue;
        const std::uint64_t sequence = sequence_of(slot, s, world.senders());
        due = std::max(due, slots_below(sequence, me, world.senders()));
      }
    }
    EXPECT_EQ(slots_due(world.real, me), due);
  });
}

/// What may be a message, as far as we know: what is not taken yet, and what lies before `real`.
bool may_be_message(const World& world, std::uint64_t sequence) {
  const std::size_t s = sequence % world.senders();
  const std::uint64_t slot = sequence / world.senders();
  return slot >= world.taken[s] || slot < world.real[s];
}

TEST(Order, OnlyMessagesHaveToBeStable) {
  for_many_worlds([](const World& world, auto& random) {
    std::optional<std::size_t> itself;
    if (random() % 3 > 0) itself = random() % world.senders();
    const std::uint64_t said = random() % 40;
    std::uint64_t lowest = said;
    const auto has = [&](std::uint64_t sequence) {
      const std::size_t s = sequence % world.senders();
      return (s == itself && sequence / world.senders() < world.taken[s]) ||
             !may_be_message(world, sequence);
    };
    while (has(lowest)) ++lowest;
    EXPECT_EQ(stable_below(said, itself, world.taken, world.real), lowest);
  });
}

TEST(Order, ReceiptsAreWorthSayingIfTheyMayBeOfAnothersMessage) {
  for_many_worlds([](const World& world, auto& random) {
    std::optional<std::size_t> me;
    if (random() % 3 > 0) me = random() % world.senders();
    const std::uint64_t now = received(world.taken);
    const std::uint64_t said = random() % (now + 1);
    bool worth = false;
    for (std::uint64_t sequence = said; sequence < now; ++sequence)
      worth |= sequence % world.senders() != me && may_be_message(world, sequence);
    EXPECT_EQ(worth_publishing(said, now, me, world.taken, world.real), worth);
  });
}

}  // namespace
}  // namespace dunlin::multicast::order
