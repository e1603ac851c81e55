#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/stores.hpp"
#include "support/rounds.hpp"

/// Stores as caches: a put into a full store makes room (STO-V1 to STO-V5).
namespace dunlin {
namespace {

using remote::Status;

StoreOptions cache(std::size_t limit_bytes) {
  StoreOptions options = test::small_store();
  options.memory_bytes = 2 << 20;
  options.expected_keys = 2'000;
  options.eviction = Eviction::lru;
  options.limit_bytes = limit_bytes;
  return options;
}

constexpr std::size_t kLimit = 512 << 10;

struct EvictionOnStores : test::OnStores {
  /// How long a slow machine takes for a round trip is not this test's concern.
  static StoreOptions patient() {
    StoreOptions options = cache(kLimit);
    if (!GetParam().name.starts_with("Sim")) options.wait_for_room_ns = 60'000'000'000;
    return options;
  }
  /// Puts so many keys, a batch at a time, and checks that each put ends well.
  void fill(Rank by, std::uint64_t first, std::uint64_t keys, std::size_t value_bytes) {
    const std::string value(value_bytes, 'v');
    for (std::uint64_t key = first; key < first + keys; key += kBatch) {
      StoreBatch batch(at(by));
      for (std::uint64_t i = key; i < std::min(key + kBatch, first + keys); ++i)
        batch.put(i, bytes(value));
      ASSERT_TRUE(cluster->until([&] { return batch.finished(); })) << "STO-V4: a put hangs";
      for (std::uint64_t i = 0; i < batch.size(); ++i)
        ASSERT_EQ(remote::describe(batch[i].status()), "done");
      for (Rank rank = 0; rank < cluster->size(); ++rank) {
        const StoreStatistics now = at(rank).statistics();
        ASSERT_LE(now.memory_bytes, kLimit) << "STO-V3";
        ASSERT_LE(now.memory_used, now.memory_bytes) << "STO-V3";
      }
    }
  }
  static constexpr std::uint64_t kBatch = 16;
};

TEST_P(EvictionOnStores, APutIntoAFullStoreMakesRoomAndStaysWithinTheLimit) {
  start(2, patient());
  fill(0, 0, 6'000, 200);
  fill(1, 6'000, 3'000, 200);
  EXPECT_GT(sum_of(&StoreStatistics::evictions), 3'000U);
  EXPECT_EQ(get(1, std::uint64_t{8'999}), std::string(200, 'v')) << "the newest key is there";
  EXPECT_EQ(get(0, std::uint64_t{0}), "-") << "the oldest key is not";
}

TEST_P(EvictionOnStores, MemoryFollowsValuesThatChangeTheirSize) {
  start(2, patient());
  fill(0, 0, 5'000, 100);
  fill(1, 5'000, 300, 4'000);
  fill(0, 5'300, 3'000, 100);
  fill(1, 8'300, 40, 30'000);
  std::size_t found = 0;
  for (std::uint64_t key = 8'324; key < 8'340; ++key) found += get(0, key).size() == 30'000 ? 1 : 0;
  EXPECT_GT(found, 0U) << "of the newest 16 keys, for 12 of which each home has room";
}

TEST_P(EvictionOnStores, WhatIsUsedStaysAndWhatIsNotGoes) {
  // The size of the others; and one of its own, whose only slab may move where requests are slow.
  for (const std::size_t value_bytes : {std::size_t{200}, std::size_t{300}}) {
    if (value_bytes != 200 && GetParam().name == "SimNarrow") break;
    start(2, patient());
    const std::string used(value_bytes, 'u');
    std::uint64_t kept = 0;
    for (std::uint64_t key = 0; key < 20; ++key) put(0, key, used);
    for (std::uint64_t round = 0; round < 40; ++round) {
      fill(0, 1'000 + round * 200, 200, 200);
      for (std::uint64_t key = 0; key < 20; ++key) get(1, key);
    }
    for (std::uint64_t key = 0; key < 20; ++key) kept += get(1, key) == used ? 1 : 0;
    EXPECT_GE(kept, 18U) << "of 20 keys of " << value_bytes << " bytes, used all the time";
    EXPECT_GT(sum_of(&StoreStatistics::evictions), 2'000U);
    cluster = nullptr;
  }
}

TEST_P(EvictionOnStores, AnUpdateAndATransactionMakeRoom) {
  start(2, patient());
  fill(0, 0, 5'000, 200);
  const std::string large(3'000, 'u');
  for (std::uint64_t key = 10'000; key < 10'100; ++key) {
    auto update = at(1).update(
        key, [&](std::optional<std::span<const std::byte>>) { return StoreUpdate::put(large); });
    ended(update);
  }
  EXPECT_EQ(get(0, std::uint64_t{10'099}), large) << "the newest key";
  for (std::uint64_t key = 20'000; key < 20'100; ++key) {
    StoreTransaction both(at(1));
    both.put(key, bytes(large));
    both.put(key + 1'000, bytes(large));
    ASSERT_EQ(remote::describe(cluster->end_of(both.commit())), "done") << "STO-V4";
  }
  EXPECT_EQ(get(0, std::uint64_t{21'099}), large);
}

/// Each member has more transactions under way than there are records, in chains that grow.
TEST_P(EvictionOnStores, ManyTransactionsMakeRoomAtOnce) {
  StoreOptions options = patient();
  options.expected_keys = 100;
  start(2, options);
  fill(0, 0, 3'000, 200);
  std::uint64_t key = 100'000;
  for (std::uint64_t round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<StoreTransaction>> all;
    for (Rank rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < 6; ++i) {
        StoreTransaction& one = *all.emplace_back(std::make_unique<StoreTransaction>(at(rank)));
        for (std::size_t puts = 0; puts < 16; ++puts)
          one.put(key++, bytes(std::string(i % 2 == 0 ? 200 : 600, 't')));
      }
    for (const auto& one : all) one->commit();
    ASSERT_TRUE(cluster->until([&] {
      return std::all_of(all.begin(), all.end(), [](const auto& one) { return one->finished(); });
    })) << "STO-V4: a transaction hangs";
    for (const auto& one : all) ASSERT_EQ(remote::describe(one->status()), "done");
  }
  std::size_t found = 0;
  for (std::uint64_t newest = key - 192; newest < key; ++newest)
    found += get(0, newest) != "-" ? 1 : 0;
  EXPECT_GT(found, 96U) << "of the newest 192 keys";
}

TEST_P(EvictionOnStores, TheLimitCanBeLoweredAndRaised) {
  start(2, patient());
  fill(0, 0, 4'000, 200);
  for (Rank rank = 0; rank < 2; ++rank) at(rank).limit_memory(128 << 10);
  int looks = 0;  // statistics() costs more than a step of the simulator
  EXPECT_TRUE(cluster->until([&] {
    return ++looks % 1'024 == 0 && at(0).statistics().memory_bytes <= 128 << 10 &&
           at(1).statistics().memory_bytes <= 128 << 10;
  })) << "STO-V3: the limit is not reached";
  fill(1, 10'000, 1'000, 200);
  EXPECT_LE(at(0).statistics().memory_bytes, 128U << 10);
  for (Rank rank = 0; rank < 2; ++rank) at(rank).limit_memory(kLimit);
  fill(1, 20'000, 4'000, 200);
  EXPECT_GT(at(0).statistics().memory_used, 256U << 10);
}

/// Exact LRU of so many keys: whether a get hits, after which the key is the newest.
class ExactLru {
 public:
  explicit ExactLru(std::size_t keys) : most_(keys) {}
  bool get(std::uint64_t key) {
    const auto known = places_.find(key);
    const bool hits = known != places_.end();
    if (hits) {
      order_.splice(order_.begin(), order_, known->second);
      return true;
    }
    order_.push_front(key);
    places_[key] = order_.begin();
    if (order_.size() > most_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    return false;
  }

 private:
  std::size_t most_;
  std::list<std::uint64_t> order_;  // the newest first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

/// A cache aside: a get that misses is followed by a put. The same gets go to an exact LRU that
/// holds as many keys as the store does at its end.
TEST_P(EvictionOnStores, ZipfGetsHitAlmostAsOftenAsWithExactLru) {
  start(2, patient());
  constexpr std::uint32_t kKeys = 8'000;
  constexpr std::uint64_t kGets = 24'000;
  std::vector<double> weights;
  for (std::uint32_t rank = 1; rank <= kKeys; ++rank) weights.push_back(std::pow(rank, -0.99));
  std::discrete_distribution<std::uint64_t> zipf(weights.begin(), weights.end());
  std::mt19937_64 random(1);
  const std::string value(200, 'v');
  std::vector<std::uint64_t> keys;
  std::uint64_t hits = 0, of_lru = 0, counted = 0;
  for (std::uint64_t i = 0; i < kGets; ++i) {
    const Rank by = i % 2 == 0 ? 0 : 1;
    const std::uint64_t key = keys.emplace_back(zipf(random));
    const bool hit = get(by, key) != "-";
    if (!hit) put(by, key, value);
    if (i >= kGets / 3) hits += hit ? 1 : 0;
  }
  const std::uint64_t held = count(0);
  ASSERT_LT(held, kKeys / 2) << "the store does not evict";
  ExactLru lru(held);
  for (std::uint64_t i = 0; i < kGets; ++i) {
    const bool hit = lru.get(keys[i]);
    if (i < kGets / 3) continue;
    ++counted;
    of_lru += hit ? 1 : 0;
  }
  std::cout << "hit ratio " << double(hits) / double(counted) << ", exact LRU of " << held
            << " keys: " << double(of_lru) / double(counted) << "\n";
  EXPECT_GE(hits * 100, of_lru * 95);
}

DUNLIN_RUN_ON(test::store_backends(), EvictionOnStores);

TEST(Eviction, AHomeThatMakesNoRoomIsWaitedForNoLongerThanAllowed) {
  static constexpr std::uint64_t kWaitNs = 300'000'000;
  test::SimStores stores(sim::profile("ib100"), 2, [] {
    StoreOptions options = cache(kLimit);
    options.homes = 1;
    options.wait_for_room_ns = kWaitNs;
    return options;
  }());
  const std::string value(200, 'v');
  std::uint64_t key = 0;
  Status status = Status::ok;
  stores.world.detach_all(0);  // it does not poll any more
  std::uint64_t began_ns = 0;
  for (; key < 10'000 && status == Status::ok; ++key) {
    began_ns = stores.world.now_ns();
    status = stores.end_of(stores[1].put(key, value));
  }
  EXPECT_EQ(remote::describe(status), remote::describe(Status::no_room)) << "STO-V4";
  const std::uint64_t waited_ns = stores.world.now_ns() - began_ns;
  EXPECT_GE(waited_ns, kWaitNs);
  EXPECT_LT(waited_ns, kWaitNs + kWaitNs / 10);
  auto get = stores[1].get(std::uint64_t{0});
  EXPECT_EQ(remote::describe(stores.end_of(get)), "done");
  EXPECT_TRUE(get.found()) << "no lock is left behind, and nothing was evicted";
}

TEST(Eviction, TheSlabsOfADeadMemberComeBack) {
  test::Mortals mortals(3, 1, sim::profile("ib100"), cache(kLimit));
  const std::string value(200, 'v');
  for (std::uint64_t key = 0; key < 2'500; ++key) mortals.put(2, std::to_string(key), value);
  mortals.world.crash(2);
  mortals.until_gone(2);
  const std::string larger(3'000, 'w');
  for (std::uint64_t key = 0; key < 500; ++key)
    mortals.put(1, "after" + std::to_string(key), larger);
  EXPECT_EQ(mortals.get(0, "after499"), larger);
  EXPECT_LE(mortals.at(0).statistics().memory_bytes, kLimit);
  EXPECT_GE(mortals.at(0).statistics().memory_used, kLimit / 2)
      << "STO-V5: the dead member's slabs are lost";
}

/// A member whose transactions put pairs of keys, and read them, again and again.
class PairWriter {
 public:
  struct Seen {
    std::uint64_t puts = 0, reads = 0, whole = 0, halves = 0, conflicts = 0, lost = 0;
  };
  PairWriter(Store& store, std::uint64_t seed, Seen& seen)
      : transaction_(store), random_(seed), seen_(seen) {}
  std::size_t step() {
    if (!transaction_.finished()) return 0;
    if (under_way_) end();
    transaction_.clear();
    under_way_ = !stopping;
    if (stopping) return 0;
    const std::uint64_t pair = random_() % kPairs;
    reads_ = random_() % 3 == 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::uint64_t key = 2 * pair + i;
      if (reads_) {
        gets_.at(i) = &transaction_.get(key);
      } else {
        transaction_.put(
            key, std::to_string(serial_) + std::string(random_() % 2 == 0 ? 2'000 : 500, ' '));
      }
    }
    serial_ += kWriters;
    transaction_.commit();
    return 1;
  }
  [[nodiscard]] bool idle() const { return !under_way_; }
  void name(std::uint64_t number) { serial_ = number; }
  void give_up() { transaction_.abandon(); }

  static constexpr std::uint64_t kWriters = 4;
  bool stopping = false;

 private:
  void end() {
    under_way_ = false;
    switch (transaction_.status()) {
      case Status::conflict:
        EXPECT_TRUE(reads_) << "STO-V4: with what could it conflict?";
        ++seen_.conflicts;
        return;
      case Status::lost:
        ++seen_.lost;
        return;
      case Status::ok:
        break;
      default:
        ADD_FAILURE() << "STO-V4: " << remote::describe(transaction_.status());
        return;
    }
    ++(reads_ ? seen_.reads : seen_.puts);
    if (!reads_) return;
    if (gets_[0]->found() != gets_[1]->found()) ++seen_.halves;
    if (!gets_[0]->found() || !gets_[1]->found()) return;
    ++seen_.whole;
    EXPECT_EQ(std::stoull(std::string(gets_[0]->text())),
              std::stoull(std::string(gets_[1]->text())))
        << "STO-7, STO-V1: a pair is of two transactions";
  }

  static constexpr std::uint64_t kPairs = 800;
  StoreTransaction transaction_;
  std::mt19937_64 random_;
  Seen& seen_;
  std::array<StoreOperation*, 2> gets_{};
  std::uint64_t serial_ = 0;
  bool under_way_ = false;
  bool reads_ = false;
};

TEST(Eviction, TakesNoPartOfATransactionBackWhileAMemberDies) {
  PairWriter::Seen seen;
  for (std::uint64_t seed = 1; seed <= test::rounds(20); ++seed) {
    StoreOptions options = cache(2 * kLimit);
    options.expected_keys = 200 + seed * 50;
    test::Mortals mortals(PairWriter::kWriters, 2, sim::profile("ib100"), options);
    std::vector<std::unique_ptr<PairWriter>> writers;
    for (Rank rank = 0; rank < PairWriter::kWriters; ++rank) {
      PairWriter& writer = *writers.emplace_back(
          std::make_unique<PairWriter>(mortals.at(rank), seed * 31 + rank, seen));
      writer.name(rank);
      mortals.world.detach_all(rank);
      mortals.world.attach(rank, [&writer, &progress = mortals.member(rank).progress] {
        return progress.poll() + writer.step();
      });
    }
    mortals.world.run_for(10'000'000 + seed * 1'234);
    mortals.world.crash(3);
    mortals.world.run_for(5'000'000);
    for (const auto& writer : writers) writer->stopping = true;
    EXPECT_TRUE(mortals.world.run_until(
        [&] {
          return std::all_of(writers.begin(), writers.end() - 1,
                             [](const auto& writer) { return writer->idle(); });
        },
        5'000'000'000))
        << "STO-V4: a transaction hangs, seed " << seed;
    for (Rank rank = 0; rank < PairWriter::kWriters; ++rank) mortals.world.detach_all(rank);
    for (const auto& writer : writers) writer->give_up();
    writers.clear();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  std::cout << seen.puts << " pairs put, " << seen.reads << " read: " << seen.whole << " whole, "
            << seen.halves << " of which one key was evicted; " << seen.conflicts << " conflicts, "
            << seen.lost << " lost\n";
  for (const std::uint64_t count : {seen.puts, seen.whole, seen.halves, seen.conflicts})
    EXPECT_GT(count, 0U) << "a test of nothing";
}

TEST(Eviction, StoresThatDoNotAgreeOnItRefuseEachOther) {
  sim::World world(sim::profile("ib100"), 2, 1);
  Store evicts(world.fabric(0), cache(kLimit));
  Store does_not(world.fabric(1), test::small_store());
  world.attach(0, [&] { return evicts.poll(); });
  world.attach(1, [&] { return does_not.poll(); });
  std::uint64_t of_the_other = 0;
  while (evicts.home_of(of_the_other) != 1) ++of_the_other;
  auto get = evicts.get(of_the_other);
  EXPECT_TRUE(world.run_until([&] { return get.finished(); }, 1'000'000'000));
  EXPECT_EQ(get.status(), Status::refused);
  world.detach_all(0);
  world.detach_all(1);
}

}  // namespace
}  // namespace dunlin
