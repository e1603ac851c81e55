#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include <dunlin/remote/pool.hpp>

namespace dunlin::remote {
namespace {

TEST(FirstFit, GivesTheFirstBlockThatIsLargeEnough) {
  FirstFit pool(1024);
  const auto a = pool.allocate(64), b = pool.allocate(256), c = pool.allocate(64);
  ASSERT_TRUE(a && b && c);
  pool.free(*a);
  pool.free(*b);
  EXPECT_EQ(pool.allocate(128), *a);  // a and b have grown together
  EXPECT_EQ(pool.allocate(64), *a + 128);
}

TEST(FirstFit, RefusesWhatDoesNotFit) {
  FirstFit pool(256);
  EXPECT_FALSE(pool.allocate(257));
  EXPECT_FALSE(pool.allocate(SIZE_MAX));
  EXPECT_EQ(pool.allocate(200), 0U);
  EXPECT_FALSE(pool.allocate(1));
}

TEST(FirstFit, SaysHowFragmentedItIs) {
  FirstFit pool(64 * 8);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(pool.allocate(1).value());
  EXPECT_EQ(pool.use().used, 512U);
  for (std::size_t i = 0; i < 8; i += 2) pool.free(blocks[i]);
  EXPECT_EQ(pool.use().largest_free, 64U);
  EXPECT_DOUBLE_EQ(pool.use().fragmentation(), 0.75);
}

/// Against a map of bytes: REM-6 and REM-7 for whatever is allocated and freed.
TEST(FirstFit, NeverGivesAByteTwice) {
  constexpr std::size_t kBytes = 64 * 100;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    FirstFit pool(kBytes);
    std::vector<bool> taken(kBytes / 64);
    std::map<std::uint64_t, std::size_t> blocks;
    for (int step = 0; step < 500; ++step) {
      if (random() % 2 == 0) {
        const std::size_t bytes = 1 + random() % 1000;
        const auto offset = pool.allocate(bytes);
        if (!offset) {
          EXPECT_LT(pool.use().largest_free, bytes);
          continue;
        }
        EXPECT_EQ(*offset % 64, 0U);
        for (std::size_t line = *offset / 64; line * 64 < *offset + bytes; ++line) {
          ASSERT_LT(line, taken.size());
          ASSERT_FALSE(taken[line]) << "seed " << seed;
          taken[line] = true;
        }
        blocks.emplace(*offset, bytes);
      } else if (!blocks.empty()) {
        auto block = blocks.begin();
        std::advance(block, static_cast<std::ptrdiff_t>(random() % blocks.size()));
        const auto [offset, bytes] = *block;
        for (std::size_t line = offset / 64; line * 64 < offset + bytes; ++line)
          taken[line] = false;
        pool.free(offset);
        blocks.erase(block);
      }
      ASSERT_EQ(pool.use().used,
                64U * static_cast<std::size_t>(std::count(taken.begin(), taken.end(), true)));
    }
    for (const auto& [offset, bytes] : blocks) pool.free(offset);
    EXPECT_EQ(pool.use().largest_free, kBytes) << "seed " << seed;
  }
}

TEST(SizeClasses, ReuseABlockForTheSameSizeOnly) {
  SizeClasses pool(64 * 64, {64, 256}, 4);
  const auto small = pool.allocate(10), large = pool.allocate(100);
  ASSERT_TRUE(small && large);
  pool.free(*small, 10);
  pool.free(*large, 100);
  EXPECT_EQ(pool.allocate(200), *large);
  EXPECT_EQ(pool.allocate(64), *small);
  EXPECT_FALSE(pool.allocate(257));
}

TEST(SizeClasses, GiveAllTheirChunksBlocks) {
  SizeClasses pool(64 * 10, {64}, 5);
  std::vector<std::uint64_t> blocks;
  while (const auto block = pool.allocate(1)) blocks.push_back(*block);
  std::sort(blocks.begin(), blocks.end());
  ASSERT_EQ(blocks.size(), 10U);
  EXPECT_EQ(std::unique(blocks.begin(), blocks.end()), blocks.end());
  EXPECT_EQ(pool.use().used, 640U);
}

}  // namespace
}  // namespace dunlin::remote
