#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"
#include "support/errors.hpp"

/// Options that cannot be, and options that must be alike.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

/// Members whose stores may differ.
struct Differing {
  explicit Differing(const std::vector<StoreOptions>& options)
      : world(sim::profile("ib100"), static_cast<std::uint32_t>(options.size()), 1) {
    for (Rank rank = 0; rank < options.size(); ++rank) {
      stores.push_back(std::make_unique<Store>(world.fabric(rank), options[rank]));
      world.attach(rank, [store = stores.back().get()] { return store->poll(); });
    }
    world.run_for(1'000'000);
  }
  ~Differing() {
    for (Rank rank = 0; rank < stores.size(); ++rank) world.detach_all(rank);
    stores.clear();
  }
  template <class Operation>
  Status end_of(Operation& operation) {
    EXPECT_TRUE(world.run_until([&] { return operation.finished(); }, 1'000'000'000)) << "hangs";
    return operation.status();
  }
  sim::World world;
  std::vector<std::unique_ptr<Store>> stores;
};

struct Other {
  std::string option;
  std::string value, other_value;
  std::function<void(StoreOptions&)> set;
};

TEST(StoreOptions, ThatDifferAreRefusedAndBothSidesAreToldWhich) {
  const std::array others{
      Other{"copies", "1", "2", [](StoreOptions& options) { options.copies = 2; }},
      Other{"homes", "2", "1", [](StoreOptions& options) { options.homes = 1; }},
      Other{"eviction", "none", "lru",
            [](StoreOptions& options) { options.eviction = Eviction::lru; }},
  };
  for (const Other& other : others) {
    SCOPED_TRACE(other.option);
    StoreOptions options = test::small_store(), changed = options;
    other.set(changed);
    Differing members({options, changed});
    for (Rank by = 0; by < 2; ++by) {
      Store& store = *members.stores[by];
      EXPECT_TRUE(contains(store.why_refused(), "store 'store': ")) << store.why_refused();
      EXPECT_TRUE(contains(store.why_refused(),
                           "'" + other.option + "' is '" +
                               (by == 0 ? other.other_value : other.value) + "' there and '" +
                               (by == 0 ? other.value : other.other_value) + "' here"))
          << store.why_refused();
      std::uint32_t refused = 0;
      for (std::uint64_t key = 0; key < 20; ++key) {
        auto put = store.put(key, "value");
        const Status status = members.end_of(put);
        EXPECT_TRUE(status == Status::ok || status == Status::refused) << remote::describe(status);
        refused += status == Status::refused ? 1 : 0;
      }
      EXPECT_GT(refused, 0U);
    }
  }
}

TEST(StoreOptions, ThatDifferInSeveralAreAllNamed) {
  StoreOptions options = test::small_store(), changed = options;
  changed.homes = 1;
  changed.copies = 2;
  const Differing members({options, changed});
  EXPECT_TRUE(contains(members.stores[0]->why_refused(), "'homes' is '1' there and '2' here"));
  EXPECT_TRUE(contains(members.stores[0]->why_refused(), "'copies' is '2' there and '1' here"));
}

TEST(StoreOptions, OfAStoreThatThisProcessHasAreRefused) {
  sim::World world(sim::profile("ib100"), 1, 1);
  auto store = std::make_unique<Store>(world.fabric(0), test::small_store());
  const std::string why =
      what_is_thrown_by([&] { const Store second(world.fabric(0), test::small_store()); });
  EXPECT_TRUE(contains(why, "store 'store': this process has one of this name already")) << why;
  StoreOptions other = test::small_store();
  other.name = "other";
  const Store further(world.fabric(0), other);
  store.reset();
  const Store after(world.fabric(0), test::small_store());
}

TEST(StoreOptions, WithMoreForLargeEntriesThanThereIsAreRefused) {
  sim::World world(sim::profile("ib100"), 1, 1);
  StoreOptions options = test::small_store();
  options.large_bytes = options.memory_bytes + 1;
  const std::string why = what_is_thrown_by([&] { const Store store(world.fabric(0), options); });
  EXPECT_TRUE(contains(why, "large_bytes is " + std::to_string(options.large_bytes))) << why;
  EXPECT_TRUE(contains(why, std::to_string(options.memory_bytes))) << why;
}

TEST(StoreOptions, GiveLargeEntriesWhatTheySay) {
  sim::World world(sim::profile("ib100"), 1, 1);
  StoreOptions options = test::small_store();
  options.memory_bytes = 8 << 20;
  options.large_bytes = 5 << 20;
  Store store(world.fabric(0), options);
  world.attach(0, [&] { return store.poll(); });
  int kept = 0;
  for (std::uint64_t key = 0; key < 8; ++key) {
    auto put = store.put(key, std::string(1'000'000, 'v'));
    EXPECT_TRUE(world.run_until([&] { return put.finished(); }, 1'000'000'000));
    kept += put.ok() ? 1 : 0;
  }
  EXPECT_EQ(kept, 4);  // of 5 MB; a quarter of the memory would hold one
  world.detach_all(0);
}

}  // namespace
}  // namespace dunlin
