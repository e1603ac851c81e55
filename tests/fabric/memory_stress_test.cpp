#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>

#include "fabric/conformance/pattern.hpp"
#include "fabric/conformance/stamped_line.hpp"
#include "fabric/memory_pairs.hpp"

/// FAB-M1 to FAB-M3 and FAB-M5 under threads. What is not an atomic access here is ordered by one,
/// or the thread sanitizer says so.
namespace dunlin {
namespace {

using conformance::fill_pattern;
using conformance::has_pattern;
using conformance::StampedLine;

template <class T>
T uniform(std::uint64_t round) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | (round & 0xff);
  return static_cast<T>(value);
}

template <class T>
std::uint64_t torn_entries() {
  constexpr std::uint64_t kRounds = 200'000;
  T shared = 0;
  std::uint64_t torn = 0;
  std::atomic<bool> written{false};
  const std::jthread writer([&] {
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      memory::store(shared, uniform<T>(round));
    }
    written = true;
  });
  while (!written) {
    const T now = memory::load(shared);
    if (now != uniform<T>(static_cast<std::uint64_t>(now))) ++torn;
  }
  return torn;
}

TEST(MemoryStress, TearsNoEntry) {
  EXPECT_EQ(torn_entries<std::uint8_t>(), 0U);
  EXPECT_EQ(torn_entries<std::uint16_t>(), 0U);
  EXPECT_EQ(torn_entries<std::uint32_t>(), 0U);
  EXPECT_EQ(torn_entries<std::uint64_t>(), 0U);
}

/// Plain bytes, announced by a word and acknowledged by another.
template <class Signal, class Seen>
std::uint64_t wrong_rounds(const Signal& signal, const Seen& seen) {
  constexpr std::uint64_t kRounds = 3'000;
  std::array<std::byte, 200> plain{};
  std::uint64_t ack = 0;
  std::uint64_t wrong = 0;
  const std::jthread writer([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      fill_pattern(plain, round);
      signal(round);
      while (memory::load(ack) != round) std::this_thread::yield();
    }
  });
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    while (seen() != round) std::this_thread::yield();
    if (!has_pattern(plain, round)) ++wrong;
    memory::store(ack, round);
  }
  return wrong;
}

TEST(MemoryStress, StoreAndLoadOrderPlainBytes) {
  std::uint64_t flag = 0;
  EXPECT_EQ(wrong_rounds([&](std::uint64_t round) { memory::store(flag, round); },
                         [&] { return memory::load(flag); }),
            0U);
}

TEST(MemoryStress, PlaceAndFetchOrderPlainBytes) {
  // Of several sizes, at any word of a line: each word placed is a release, each fetched an
  // acquire.
  alignas(64) std::array<std::uint64_t, 24> shared{};
  const auto words = [](std::uint64_t round) { return 1 + round % 15; };
  const auto first = [](std::uint64_t round) { return round % 9; };
  std::uint64_t next = 1;
  EXPECT_EQ(wrong_rounds(
                [&](std::uint64_t round) {
                  std::array<std::uint64_t, 16> mine{};
                  mine.fill(round);
                  memory::place(&shared[first(round)], mine.data(), 8 * words(round));
                },
                [&] {
                  std::array<std::uint64_t, 16> mine{};
                  memory::fetch(mine.data(), &shared[first(next)], 8 * words(next));
                  const auto end = mine.begin() + static_cast<std::ptrdiff_t>(words(next));
                  if (std::count(mine.begin(), end, next) != end - mine.begin()) return next - 1;
                  return next++;
                }),
            0U);
}

TEST(MemoryStress, AnAtomicOrdersPlainBytes) {
  std::uint64_t word = 0;
  EXPECT_EQ(wrong_rounds(
                [&](std::uint64_t round) {
                  if (round % 2 == 0) {
                    memory::fetch_add(&word, 1);
                  } else {
                    memory::compare_swap(&word, round - 1, round);
                  }
                },
                [&] { return memory::load(word); }),
            0U);
}

/// FAB-M2 promises what this test checks.
TEST(MemoryStress, PlaceFillsALineUpwards) {
  constexpr std::uint64_t kRounds = 50'000;
  StampedLine shared;
  std::uint64_t overtaken = 0;
  const std::jthread writer([&] {
    StampedLine mine;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      mine.words.fill(round);
      memory::place(&shared, &mine, sizeof mine);
    }
  });
  std::uint64_t last = 0;
  while (last < kRounds) {
    std::uint64_t above = memory::load(shared.words[7]);
    last = above;
    for (std::size_t i = 7; i-- > 0;) {
      const std::uint64_t below = memory::load(shared.words[i]);
      if (below < above) ++overtaken;
      above = below;
    }
  }
  EXPECT_EQ(overtaken, 0U);
}

/// The source of place() and the target of fetch() begin so many words behind a line.
void expect_whole_lines(std::size_t shift) {
  constexpr std::uint64_t kRounds = 20'000;
  using Lines = std::array<StampedLine, 5>;
  Lines shared;
  std::uint64_t torn = 0;
  std::uint64_t accepted = 0;
  const std::jthread writer([&] {
    Lines mine;
    alignas(kCacheLineBytes) std::array<std::byte, sizeof(Lines) + kCacheLineBytes> moved{};
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      for (StampedLine& line : mine) line.stamp(round);
      std::memcpy(&moved[shift * kWordBytes], &mine, sizeof mine);
      memory::place(&shared, &moved[shift * kWordBytes], sizeof mine);
    }
  });
  Lines seen;
  alignas(kCacheLineBytes) std::array<std::byte, sizeof(Lines) + kCacheLineBytes> moved{};
  while (seen.back().words.back() != kRounds) {
    memory::fetch(&moved[shift * kWordBytes], &shared, sizeof seen);
    std::memcpy(&seen, &moved[shift * kWordBytes], sizeof seen);
    for (const StampedLine& line : seen) {
      if (!line.accepted()) continue;
      ++accepted;
      if (line.torn()) ++torn;
    }
  }
  EXPECT_EQ(torn, 0U) << shift;
  EXPECT_GT(accepted, 0U) << shift;
}

TEST(MemoryStress, FetchTearsNoLineOfMany) {
  for (const std::size_t shift : {0U, 1U, 2U, 7U}) expect_whole_lines(shift);
}

using CopyWords = void (*)(std::byte* to, const std::byte* from, std::size_t words);

/// A version before and after, as segments have it, around a copy of so many words that begins
/// `shift` words behind a line. Also a copy that came between two versions has whole words only.
/// The version's stores are no locked instructions, which would order all copies.
void expect_whole_copies(CopyWords copy, std::size_t words, std::size_t shift) {
  const auto bytes_of = [](auto& word) { return reinterpret_cast<std::byte*>(&word); };
  const std::uint64_t rounds = 20'000'000 / (words * kWordBytes);
  std::uint64_t version = 0, torn = 0, mixed = 0, whole = 0;
  std::vector<std::uint64_t> shared(words + shift);
  const std::jthread writer([&] {
    std::vector<std::uint64_t> mine(words);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      std::fill(mine.begin(), mine.end(), uniform<std::uint64_t>(round % 200));
      memory::store(version, 2 * round - 1);
      copy(bytes_of(shared[shift]), bytes_of(mine[0]), words);
      memory::store(version, 2 * round);
    }
  });
  std::vector<std::uint64_t> seen(words);
  for (std::uint64_t before = 0; before != 2 * rounds;) {
    before = memory::load(version);
    copy(bytes_of(seen[0]), bytes_of(shared[shift]), words);
    for (const std::uint64_t word : seen) torn += word != uniform<std::uint64_t>(word & 0xff);
    if (before % 2 != 0 || memory::load(version) != before) continue;
    ++whole;
    mixed += seen.front() != uniform<std::uint64_t>(before / 2 % 200) ||
             std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) != seen.end();
  }
  EXPECT_EQ(torn, 0U) << words << " words behind " << shift;
  EXPECT_EQ(mixed, 0U) << words << " words behind " << shift;
  EXPECT_GT(whole, 0U);
}

TEST(MemoryStress, CopyTearsNoWordAndStaysBetweenTwoVersions) {
  const CopyWords copy = [](std::byte* to, const std::byte* from, std::size_t words) {
    memory::copy(to, from, words * kWordBytes);
  };
  for (const std::size_t words : {40U, 128U, 3'000U})
    for (const std::size_t shift : {0U, 1U, 3U, 6U}) expect_whole_copies(copy, words, shift);
}

/// copy() takes this way from 32 MB on.
TEST(MemoryStress, ACopyPastTheCachesTearsNoWordAndStaysBetweenTwoVersions) {
  if (!memory::detail::pairs_are_atomic()) GTEST_SKIP() << "copy() does not take this way here";
  for (const std::size_t words : {40U, 3'000U})
    for (const std::size_t shift : {0U, 1U, 3U, 6U})
      expect_whole_copies(memory::detail::copy_past_caches, words, shift);
}

/// A word after the copy announces it, and the reader begins with what was copied last. Threads
/// that share a processor need a time slice for each round, so a time limits the rounds.
TEST(MemoryStress, ACopyPastTheCachesComesBeforeTheNextStore) {
  if (!memory::detail::pairs_are_atomic()) GTEST_SKIP() << "copy() does not take this way here";
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kLength = 64;
  constexpr std::uint64_t kEnd = UINT64_MAX;
  alignas(kCacheLineBytes) std::array<std::uint64_t, kLength> shared{};
  alignas(kCacheLineBytes) std::uint64_t announced = 0;
  alignas(kCacheLineBytes) std::uint64_t seen = 0;
  const std::jthread writer([&] {
    std::array<std::uint64_t, kLength> mine{};
    const auto until = Clock::now() + std::chrono::milliseconds(700);
    for (std::uint64_t round = 1; Clock::now() < until; ++round) {
      mine.fill(round);
      memory::detail::copy_past_caches(reinterpret_cast<std::byte*>(shared.data()),
                                       reinterpret_cast<const std::byte*>(mine.data()), kLength);
      memory::store(announced, round);
      while (memory::load(seen) != round) std::this_thread::yield();
    }
    memory::store(announced, kEnd);
  });
  std::uint64_t late = 0, last = 0;
  for (std::uint64_t round = 0; round != kEnd; round = memory::load(announced)) {
    if (round == last) {
      std::this_thread::yield();
      continue;
    }
    for (std::size_t i = kLength; i-- > 0;) late += memory::load(shared[i]) != round ? 1U : 0U;
    memory::store(seen, last = round);
  }
  EXPECT_EQ(late, 0U);
  EXPECT_GT(last, 0U);
}

TEST(MemoryStress, FetchAddLosesNothing) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 20'000;
  std::uint64_t word = 0;
  std::array<std::vector<std::uint64_t>, kThreads> drawn;
  {
    std::vector<std::jthread> threads;
    for (auto& mine : drawn) {
      threads.emplace_back([&] {
        for (std::uint64_t i = 0; i < kEach; ++i) mine.push_back(memory::fetch_add(&word, 1));
      });
    }
  }
  std::vector<std::uint64_t> all;
  for (const auto& mine : drawn) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(word, kThreads * kEach);
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(MemoryStress, CompareSwapMakesALockAroundPlainMemory) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 3'000;
  std::uint64_t lock = 0;
  std::uint64_t plain = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t name = 1; name <= kThreads; ++name) {
      threads.emplace_back([&, name] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          while (memory::compare_swap(&lock, 0, name) != 0) std::this_thread::yield();
          ++plain;
          memory::store(lock, 0);
        }
      });
    }
  }
  EXPECT_EQ(plain, kThreads * kEach);
}

}  // namespace
}  // namespace dunlin
