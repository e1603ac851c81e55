#include "store/store_values.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/stores.hpp"

/// The store of simulated members behind the commands.
namespace {

using dunlin::app::resp::Call;
using dunlin::app::resp::Order;
using dunlin::app::resp::StoreValues;
using dunlin::app::resp::TransactionKey;

/// As a script does that runs for 15 ms. The context counts the decisions.
bool take_long(void* context, std::span<TransactionKey>) {
  ++*static_cast<int*>(context);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(15);
  while (std::chrono::steady_clock::now() < end) {
  }
  return false;
}

TEST(StoreValues, PollTheStoreBetweenTransactionsThatTakeLong) {
  dunlin::test::SimStores stores(dunlin::sim::profile("ib100"), 2, dunlin::test::small_store());
  StoreValues values(stores[0], {});
  constexpr int kCount = 10;
  int decisions = 0;
  int ended = 0;
  std::array<TransactionKey, 1> key{TransactionKey{.key = "k"}};
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kCount; ++i) {
    calls.push_back(values.make_call());
    calls.back()->on_end = [&](Call&) { ++ended; };
    ASSERT_FALSE(calls.back()->start({.kind = Order::Kind::transact,
                                      .decide_keys = take_long,
                                      .keys = key,
                                      .context = &decisions}));
  }
  stores.world.run_for(100'000'000);
  for (int polls = 0; ended < kCount && polls < kCount; ++polls) {
    const int before = decisions;
    EXPECT_GT(values.poll(), 0U);
    EXPECT_LE(decisions - before, 2);
  }
  EXPECT_EQ(ended, kCount);
  EXPECT_EQ(decisions, kCount) << "each has its turn";
}

}  // namespace
