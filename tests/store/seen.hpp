#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

/// What the audit of a store has seen in random histories, and the values that it puts.
namespace dunlin::test {

struct StoreSeen {
  std::uint64_t calls = 0, found = 0, lost = 0, stopped = 0, abandoned = 0, no_room = 0,
                repaired_locks = 0, repaired_entries = 0, cache_hits = 0, cache_stale = 0,
                read_again = 0, last_gets = 0, calls_of_joiners = 0, evictions = 0,
                waits_for_room = 0, marks = 0, splits = 0, copies_restored = 0, leaves = 0,
                leaves_with_copies = 0, takes = 0, takes_with_copies = 0, keys_moved = 0,
                deaths_amid_moves = 0;

  void add(const Store& store) {
    const auto counters = store.counters();
    for (const auto& [name, sum] : {std::pair{"repaired_locks", &repaired_locks},
                                    {"repaired_entries", &repaired_entries},
                                    {"cache_hits", &cache_hits},
                                    {"cache_stale", &cache_stale},
                                    {"read_again", &read_again},
                                    {"waits_for_room", &waits_for_room},
                                    {"marks", &marks},
                                    {"splits", &splits},
                                    {"copies_restored", &copies_restored},
                                    {"keys_moved", &keys_moved}})
      *sum += counters.at(name);
    evictions += store.statistics().evictions;
  }
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << calls << " calls, " << found << " found their key, " << lost << " lost, " << stopped
         << " stopped, " << abandoned << " abandoned, " << no_room << " without room, "
         << repaired_locks << " locks and " << repaired_entries << " entries repaired, "
         << cache_hits << " cache hits, " << cache_stale << " stale, " << read_again
         << " read again, " << calls_of_joiners << " calls of members that joined, " << splits
         << " chains split, " << copies_restored << " copies restored, " << leaves
         << " homes left, " << leaves_with_copies << " of them with two copies, " << takes
         << " times keys taken, " << takes_with_copies << " of them with two copies, " << keys_moved
         << " keys moved";
    return text.str();
  }
};

inline std::uint64_t key_of(std::uint32_t number) { return 1'000'003 * std::uint64_t{number + 1}; }
/// A value: its number, over and over.
inline std::vector<std::byte> value_of(std::uint64_t number, std::size_t words) {
  const std::vector<std::uint64_t> all(words, number);
  std::vector<std::byte> bytes(words * sizeof number);
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}
/// Its number; fails if it is not whole (STO-3).
inline std::uint64_t number_of(std::span<const std::byte> value) {
  std::vector<std::uint64_t> words(value.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), value.data(), words.size() * sizeof(std::uint64_t));
  if (words.empty()) {
    ADD_FAILURE() << "STO-3: an empty value was never put";
    return 0;
  }
  for (const std::uint64_t word : words) EXPECT_EQ(word, words[0]) << "STO-3: torn";
  return words[0];
}

}  // namespace dunlin::test
