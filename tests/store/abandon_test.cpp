#include <cstdint>
#include <string>

#include "store/stores.hpp"
#include "support/errors.hpp"

/// Calls that are given up at each moment of their way.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;

struct AbandonedCalls : test::OnStores {
  /// How many keys there is room for; they are erased again.
  std::uint64_t fill(std::string_view value) {
    std::uint64_t keys = 0;
    Status status = Status::ok;
    while (status == Status::ok && keys < 5'000) {
      status = cluster->end_of(at(1).put(keys, value));
      if (status == Status::ok) ++keys;
    }
    EXPECT_EQ(remote::describe(status), remote::describe(Status::no_room));
    for (std::uint64_t key = 0; key < keys; ++key) EXPECT_TRUE(erase(1, key));
    return keys;
  }
};
DUNLIN_RUN_ON(test::store_backends(), AbandonedCalls);

TEST_P(AbandonedCalls, HappenAsAWholeOrNot) {
  start(2);
  put(0, "key", "before");
  for (int rounds = 0; rounds < 12; ++rounds) {
    {
      auto op = at(0).put("key", "after " + std::to_string(rounds));
      cluster->pass(rounds);
    }
    const std::string seen = get(1, "key");
    EXPECT_TRUE(seen == "before" || contains(seen, "after ")) << seen;
    EXPECT_TRUE(ended(at(1).insert("key", bytes("x"))).found());
    put(1, "key", "before");
  }
}

/// The next call has the memory of the abandoned one, or has freed it.
TEST_P(AbandonedCalls, ReadNothingOfTheNextCalls) {
  start(2);
  std::string before = "before";
  put(0, "key", before);
  for (std::size_t rounds = 0; rounds < 60; ++rounds) {
    const std::string value(1 + rounds * 30, static_cast<char>('a' + rounds % 26));
    {
      auto op = at(0).put("key", value);
      cluster->pass(rounds);
    }
    ended(at(0).put("other", std::string(100 + rounds * 60, '!')));
    const std::string seen = get(1, "key");
    ASSERT_TRUE(seen == before || seen == value) << rounds << ": " << seen;
    before = seen;
  }
}

TEST_P(AbandonedCalls, WriteNothingIntoFreedMemory) {
  start(2);
  const std::string value(5'000, 'v');
  for (std::uint64_t key = 0; key < 20; ++key) put(0, key, value);
  for (int rounds = 0; rounds < 30; ++rounds) {
    {
      StoreBatch batch(at(1));
      for (std::uint64_t key = 0; key < 20; ++key) batch.get(key);
      StoreScan scan(at(1), {.buckets = 100});
      scan.step(0);
      auto count = at(1).count();
      cluster->pass(rounds);
    }
    const std::string longer(6'000 + static_cast<std::size_t>(rounds) * 100, 'l');
    put(1, "other", longer);
    EXPECT_EQ(get(1, "other"), longer);
  }
}

TEST_P(AbandonedCalls, KeepNoMemory) {
  StoreOptions options = test::small_store();
  options.memory_bytes = kMinStoreBytes;
  options.expected_keys = 1'000;  // an index that grew would take a slab
  options.homes = 1;
  start(2, options);
  const std::string value(2'000, 'v');
  const std::uint64_t room = fill(value);
  for (int rounds = 0; rounds < 400; ++rounds) {
    {
      auto one = at(1).put("one", value), two = at(1).put("two", value),
           three = at(1).put("three", value);
      cluster->pass(rounds % 64);  // each of these may give way to other processes
    }
    for (const char* const key : {"one", "two", "three"}) erase(1, key);
  }
  EXPECT_EQ(fill(value), room);
}

}  // namespace
}  // namespace dunlin
