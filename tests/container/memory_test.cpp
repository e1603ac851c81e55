#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "container/clusters.hpp"
#include "remote/counted_memory.hpp"

/// Members whose memory has ended.
namespace dunlin {
namespace {

using remote::Status;

constexpr std::size_t kMoreThanTheFabricTakes = kMessageRingBytes / kMessageHeader;

/// CON-P3: the messages that wait have taken all memory, and the fabric has no room for a further
/// one.
TEST(FunctionsWithoutMemory, EndAlsoIfThereIsNoneForTheirReplies) {
  test::RealContainers cluster(test::backend_of("Shm"), 2);
  std::uint32_t runs = 0;
  const auto run = [&] { ++runs; };
  Function<void()> here(cluster[0], {.name = "run"}, run), there(cluster[1], {.name = "run"}, run);
  EXPECT_EQ(cluster.end_of(cluster[0].at(1, here)), Status::ok);
  std::vector<decltype(cluster[0].at(1, here))> calls;
  const auto fill_requests = [&] {
    for (std::size_t i = 0; i < kMoreThanTheFabricTakes; ++i)
      calls.push_back(cluster[0].at(1, here));
  };
  for (int rounds = 0; rounds < 2; ++rounds) {
    fill_requests();
    cluster[1].poll();  // and this member does not poll: replies fill the fabric, and then wait
  }
  fill_requests();
  const std::uint32_t ran = runs;
  bool has_thrown = false;
  try {
    const test::NoMemoryForObjects none;
    cluster[1].poll();
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  EXPECT_TRUE(has_thrown);
  EXPECT_EQ(runs, ran);
  EXPECT_TRUE(cluster.until([&] {
    return std::ranges::all_of(calls, [](const auto& call) { return call.finished(); });
  }));
}

}  // namespace
}  // namespace dunlin
