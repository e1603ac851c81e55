#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/growing.hpp"
#include "store/mortals.hpp"

/// Founders that share a store, and members that join them later and contribute memory.
namespace dunlin::test {

inline constexpr Rank kLate = kFounders;

inline StoreOptions roomy_store(std::uint32_t homes = 0) {
  StoreOptions options = test::small_store();
  options.expected_keys = 8;
  options.homes = homes;
  return options;
}
inline std::string name_of(int key) { return "key " + std::to_string(key); }

struct Joining : Growing {
  explicit Joining(const StoreOptions& its_options = roomy_store(), std::uint32_t others = 2)
      : Growing(others, test::Mortals::network(), its_options) {
    options.contributes = true;  // those that join
  }
  void fill(int many, Rank by = 0) {
    for (int key = 0; key < many; ++key) {
      expected[name_of(key)] = std::string(static_cast<std::size_t>(key) * 20, 'v') + name_of(key);
      put(by, name_of(key), expected[name_of(key)]);
    }
  }
  void expect_all(Rank by) {
    for (const auto& [key, value] : expected) EXPECT_EQ(get(by, key), value) << "STO-M1: " << key;
    EXPECT_EQ(scanned(by), expected) << "STO-M1";
    EXPECT_EQ(count(by), expected.size());
  }
  std::uint64_t keys_at(Rank rank) { return at(rank).store.statistics().keys; }
  std::map<std::string, std::string> expected;
};

}  // namespace dunlin::test
