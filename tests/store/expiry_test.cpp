#include <cstdint>
#include <string>

#include <poll.h>

#include <dunlin/join.hpp>

#include "store/stores.hpp"
#include "support/fresh_group.hpp"

/// Keys that live for a while only, by simulated clocks.
namespace dunlin {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct Expiry : testing::Test {
  test::SimStores stores{sim::profile("ib100"), 2, test::small_store()};
  std::string get(Rank by, StoreKey key) {
    auto op = stores[by].get(key);
    EXPECT_EQ(remote::describe(stores.end_of(op)), "done");
    return op.found() ? std::string(op.text()) : "-";
  }
  bool put(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
    auto op = stores[0].put(key, value, ttl_ns);
    stores.end_of(op);
    return op.found();
  }
  std::uint64_t ttl(StoreKey key) {
    auto op = stores[1].get(key);
    stores.end_of(op);
    return op.ttl_ns();
  }
};

TEST_F(Expiry, AKeyIsGoneOnceItsTimeIsOver) {
  put("a", "1", 100 * kMs);
  put("b", "2", kNoExpiry);
  EXPECT_EQ(get(1, "a"), "1");
  EXPECT_LE(ttl("a"), 120 * kMs);
  EXPECT_GT(ttl("a"), 50 * kMs);
  EXPECT_EQ(ttl("b"), kNoExpiry);
  stores.world.run_for(200 * kMs);
  EXPECT_EQ(get(1, "a"), "-");
  EXPECT_EQ(get(0, "a"), "-");
  EXPECT_EQ(get(1, "b"), "2");
}

TEST_F(Expiry, AnExpiredKeyCanBeInsertedAndIsNotFound) {
  put("a", "1", 20 * kMs);
  stores.world.run_for(21 * kMs);
  EXPECT_FALSE(put("a", "2", kNoExpiry));
  EXPECT_EQ(get(1, "a"), "2");
  stores.world.run_for(100 * kMs);
  EXPECT_EQ(get(1, "a"), "2");
}

TEST_F(Expiry, WhatHasExpiredIsErasedByItsHome) {
  for (std::uint64_t key = 0; key < 50; ++key) put(key, "value", 20 * kMs);
  stores.world.run_for(3'000 * kMs);
  auto count = stores[1].count();
  stores.end_of(count);
  EXPECT_EQ(count.keys(), 0U);
  EXPECT_EQ(stores[0].statistics().value_bytes + stores[1].statistics().value_bytes, 0U);
}

TEST_F(Expiry, TheTimeCanBeChangedAndKept) {
  put("a", "1", 50 * kMs);
  auto longer = stores[1].expire("a", 500 * kMs);
  stores.end_of(longer);
  EXPECT_TRUE(longer.changed());
  stores.world.run_for(200 * kMs);
  EXPECT_EQ(get(0, "a"), "1");
  put("a", "2", kKeepExpiry);
  EXPECT_EQ(get(0, "a"), "2");
  auto update = stores[1].update(
      "a", [](std::optional<std::span<const std::byte>>) { return StoreUpdate::put("3"); });
  stores.end_of(update);
  EXPECT_EQ(get(0, "a"), "3");
  EXPECT_LE(ttl("a"), 350 * kMs);
  stores.end_of(stores[1].expire("a", kNoExpiry));
  stores.world.run_for(1'000 * kMs);
  EXPECT_EQ(get(0, "a"), "3");
  auto absent = stores[0].expire("nothing", kMs);
  stores.end_of(absent);
  EXPECT_FALSE(absent.changed());
}

// Without heartbeats nothing else wakes a process that serves nobody.
TEST(ExpiryOnShm, AHomeThatSleepsIsWokenForItsDutyThoughItHasAskedForAnEarlierTime) {
  const auto fabric = join({.group = test::fresh_group(), .members = 1, .silence_timeout_ms = 0});
  Store store(*fabric, test::small_store());
  store.poll();
  const std::uint64_t soon = fabric->now_ns() + 1'000;
  fabric->wake_at(soon);
  while (fabric->recent_ns() < soon) store.poll();
  while (true) {
    fabric->prepare_sleep();
    if (store.poll() == 0) break;
    fabric->cancel_sleep();
  }
  pollfd readable{.fd = fabric->wait_descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&readable, 1, 60'000), 1);
  fabric->cancel_sleep();
}

}  // namespace
}  // namespace dunlin
