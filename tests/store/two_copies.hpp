#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/joining.hpp"
#include "store/mortals.hpp"
#include "store/stores.hpp"

/// Stores with two copies of each key, whose keys move.
namespace dunlin::test {

inline StoreOptions two_copies(std::uint32_t homes = 0, std::uint64_t expected_keys = 8) {
  StoreOptions options = roomy_store(homes);
  options.expected_keys = expected_keys;
  options.copies = 2;
  return options;
}

/// Homes of the lower ranks, and clients.
struct CopiedMortals : Mortals {
  explicit CopiedMortals(std::uint32_t members = 6, std::uint32_t homes = 5,
                         const StoreOptions& options = two_copies())
      : Mortals(members, homes, network(), options) {}
  void fill(int many) {
    for (int key = 0; key < many; ++key) change(0, key, "v");
  }
  void change(Rank by, int key, const std::string& text) {
    std::string value = std::string(static_cast<std::size_t>(key) * 20, 'v') + text;
    put(by, name_of(key), value);
    expected[name_of(key)] = std::move(value);
  }
  void erase(Rank by, const std::string& key) {
    auto erases = at(by).erase(key);
    EXPECT_EQ(remote::describe(end_of(erases)), "done");
    expected.erase(key);
  }
  remote::Status leave(Rank rank) {
    auto leaves = at(rank).leave();
    return end_of(leaves);
  }
  void expect_all(Rank by, const char* why) {
    for (const auto& [key, value] : expected) EXPECT_EQ(get(by, key), value) << why << ": " << key;
    EXPECT_EQ(scanned(by), expected) << why;
  }
  void expect_count(Rank by) {
    auto count = at(by).count();
    EXPECT_EQ(remote::describe(end_of(count)), "done");
    EXPECT_EQ(count.keys(), expected.size());
  }
  void part(Rank rank, Rank sees) {
    nodes[rank].group->leave();
    EXPECT_TRUE(
        world.run_until([&] { return !nodes[sees].progress->contains(rank); }, 1'000'000'000));
  }
  /// Each of them has second copies of its keys at one that is there.
  void expect_complete(std::initializer_list<Rank> homes) {
    const auto is_complete = [&] {
      return std::ranges::all_of(homes,
                                 [&](Rank rank) { return at(rank).statistics().copies_complete; });
    };
    EXPECT_TRUE(world.run_until(is_complete, 10'000'000'000)) << "STO-C4: copies are not made\n"
                                                              << states();
  }
  /// That one dies, and the others have made its copies again.
  void bury(Rank dies, std::initializer_list<Rank> homes, Rank by) {
    world.crash(dies);
    EXPECT_TRUE(world.run_until(
        [&] {
          return std::ranges::none_of(
                     homes, [&](Rank rank) { return nodes[rank].progress->contains(dies); }) &&
                 !nodes[by].progress->contains(dies);
        },
        10'000'000'000))
        << states();
    expect_complete(homes);
  }
  std::map<std::string, std::string> expected;
};

/// Each key of these members' own parts once, and nothing else (STO-C3).
template <class StoreAt>
void expect_local_once(const std::map<std::string, std::string>& expected,
                       const std::vector<Rank>& members, const StoreAt& store_at) {
  std::map<std::string, int> seen;
  for (const Rank rank : members)
    store_at(rank).for_each_local([&](const StoreEntry& entry) {
      ++seen[{reinterpret_cast<const char*>(entry.key.data()), entry.key.size()}];
    });
  EXPECT_EQ(seen.size(), expected.size());
  for (const auto& [key, times] : seen) {
    EXPECT_EQ(times, 1) << "STO-C3: " << key;
    EXPECT_TRUE(expected.contains(key)) << "STO-C3: " << key;
  }
}

}  // namespace dunlin::test
