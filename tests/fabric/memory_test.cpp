#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>

namespace dunlin {
namespace {

constexpr std::size_t kArea = 4 * kCacheLineBytes;
struct alignas(kCacheLineBytes) Area {
  std::array<std::uint8_t, kArea> bytes{};
};

using Copy = void (*)(void*, const void*, std::size_t);

/// Every offset and size, with source and target a different number of words apart.
void expect_exact_copies(Copy copy) {
  Area source;
  for (std::size_t i = 0; i < kArea; ++i) source.bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  for (std::size_t offset = 0; offset < kCacheLineBytes; ++offset) {
    for (std::size_t bytes = 0; bytes <= 2 * kCacheLineBytes + 9; ++bytes) {
      const std::size_t shift = (bytes % 4) * kWordBytes;
      Area target, expected;
      std::copy_n(&source.bytes[offset + shift], bytes, &expected.bytes[offset]);
      copy(&target.bytes[offset], &source.bytes[offset + shift], bytes);
      ASSERT_EQ(target.bytes, expected.bytes) << "offset " << offset << ", bytes " << bytes;
    }
  }
}

TEST(Memory, PlacesEveryOffsetAndSizeExactly) {
  expect_exact_copies(
      [](void* to, const void* from, std::size_t n) { memory::place(to, from, n); });
}

TEST(Memory, FetchesEveryOffsetAndSizeExactly) {
  expect_exact_copies(
      [](void* to, const void* from, std::size_t n) { memory::fetch(to, from, n); });
}

TEST(Memory, CopiesEveryOffsetAndSizeExactly) {
  expect_exact_copies([](void* to, const void* from, std::size_t n) { memory::copy(to, from, n); });
}

/// Sizes on both sides of each way to copy: words, vectors, a string.
TEST(Memory, CopiesLongAreasExactly) {
  constexpr std::size_t kMost = 40'000, kRoom = kMost + 2 * kCacheLineBytes;
  std::vector<std::uint8_t> source(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) source[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  for (const std::size_t offset : {0U, 3U, 8U, 24U, 40U}) {
    for (const std::size_t bytes :
         {255U, 256U, 257U, 311U, 1'024U, 16'383U, 16'384U, 16'397U, 40'000U}) {
      std::vector<std::uint8_t> target(kRoom), expected(kRoom);
      std::copy_n(&source[offset + kWordBytes], bytes, &expected[offset]);
      memory::copy(&target[offset], &source[offset + kWordBytes], bytes);
      ASSERT_EQ(target, expected) << "offset " << offset << ", bytes " << bytes;
    }
  }
}

/// The size from which on the copy goes past the caches, with a beginning and an end that do not.
TEST(Memory, CopiesAnAreaThatNoCacheHoldsExactly) {
  constexpr std::size_t kBytes = (std::size_t{32} << 20) + 2 * kCacheLineBytes + 13;
  std::vector<std::uint8_t> source(kBytes + kWordBytes), target(kBytes + kWordBytes + 1);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  memory::copy(&target[kWordBytes], source.data(), kBytes);
  EXPECT_TRUE(std::equal(source.begin(), source.begin() + kBytes, target.begin() + kWordBytes));
  EXPECT_EQ(target[kWordBytes - 1], 0U);
  EXPECT_EQ(target[kWordBytes + kBytes], 0U);
}

TEST(Memory, AtomicsReturnWhatWasThereBefore) {
  std::uint64_t word = 5;
  EXPECT_EQ(memory::fetch_add(&word, 2), 5u);
  EXPECT_EQ(memory::compare_swap(&word, 5, 9), 7u);
  EXPECT_EQ(word, 7u);
  EXPECT_EQ(memory::compare_swap(&word, 7, 9), 7u);
  EXPECT_EQ(word, 9u);
}

TEST(Memory, LoadsAndStoresAnyTypeOfAWordsSize) {
  double number = 0;
  memory::store(number, 2.5);
  EXPECT_EQ(memory::load(number), 2.5);
  enum class Small : std::uint8_t { no, yes } flag = Small::no;
  memory::store(flag, Small::yes);
  EXPECT_EQ(memory::load(flag), Small::yes);
}

}  // namespace
}  // namespace dunlin
