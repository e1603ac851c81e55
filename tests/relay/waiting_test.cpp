#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "relay/house.hpp"

/// The work of a relay whose clients wait.
namespace {

std::atomic<std::uint64_t> allocations{0};

void* allocate(std::size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace dunlin::test {
namespace {

using namespace dunlin::relay;

constexpr std::uint32_t kWaiting = 250;

/// A look at what one client waits for allocates memory, as finding its topic does.
TEST(RelayWaiting, CostsNothingUntilSomethingChanges) {
  House house;
  std::vector<pubsub::Topic<Counted>> others;  // so that there is something to look through
  for (const char* const name : {"a", "b", "c", "d"}) others.emplace_back(house.participant, name);
  std::vector<std::unique_ptr<RelayClient>> clients;
  std::vector<RelayReader<Counted>> readers;
  for (std::uint32_t i = 0; i < kWaiting; ++i) {
    clients.push_back(house.client());
    house.polled.push_back(clients.back().get());
    readers.emplace_back(*clients.back(), "later");
  }
  ASSERT_TRUE(house.until([&] {
    return std::ranges::all_of(clients, [](const auto& one) { return one->connected(); }) &&
           std::ranges::all_of(others, [](const auto& one) { return one.joined(); });
  }));
  house.polled.clear();
  std::uint32_t idle = 0;
  ASSERT_TRUE(house.until([&] { return (idle = house.poll() == 0 ? idle + 1 : 0) > 1'000; }));

  const std::uint64_t before = allocations;
  const std::uint64_t end_ns = house.fabric->now_ns() + 50'000'000;
  while (house.fabric->now_ns() < end_ns) house.poll();
  EXPECT_LT(allocations - before, kWaiting) << "less than one look at each";

  const pubsub::Topic<Counted> topic(house.participant, "later");
  pubsub::DataWriter<Counted> writer{pubsub::Publisher(house.participant), topic};
  for (const auto& client : clients) house.polled.push_back(client.get());
  ASSERT_TRUE(house.until(
      [&] { return std::ranges::all_of(readers, [](const auto& one) { return one.ready(); }); }));
}

}  // namespace
}  // namespace dunlin::test
