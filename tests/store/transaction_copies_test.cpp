#include <cstdint>
#include <deque>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/stores.hpp"
#include "support/rounds.hpp"

/// Transactions in a store with two copies of each key.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;

constexpr int kFewKeys = 5;
constexpr int kKeys = 12;  // of one chain or two, which get longer

StoreOptions two_copies() {
  StoreOptions options = test::tiny_store();
  options.expected_keys = 1;
  options.copies = 2;
  return options;
}
/// Of a key whose home is `key` % 3, of three.
std::string name_of(int key) {
  static const std::vector<std::string> names = [] {
    Mortals mortals(3, 3, Mortals::network(), two_copies());
    std::vector<std::string> all;
    for (int i = 0; i < kKeys; ++i) {
      all.push_back("key " + std::to_string(i));
      while (mortals.at(0).home_of(all.back()) != static_cast<Rank>(i % 3)) all.back() += "y";
    }
    return all;
  }();
  return names.at(static_cast<std::size_t>(key));
}

std::string value_for(int key) { return std::string(static_cast<std::size_t>(key) * 100, 'v'); }

// --- on each fabric ------------------------------------------------------------------------------

struct TransactionsWithCopies : test::OnStores {};
DUNLIN_RUN_ON(test::store_backends(), TransactionsWithCopies);

TEST_P(TransactionsWithCopies, ChangeSeveralKeysAtOnce) {
  start(3, two_copies());
  for (int key = 0; key < kKeys; key += 2) put(0, name_of(key), "former");
  StoreTransaction transaction(at(1));
  for (int key = 0; key < kKeys; ++key) {
    if (key % 4 == 0)
      transaction.erase(name_of(key));
    else
      transaction.put(name_of(key), value_for(key));
  }
  EXPECT_EQ(remote::describe(cluster->end_of(transaction.commit())), "done");
  for (int key = 0; key < kKeys; ++key)
    EXPECT_EQ(get(2, name_of(key)), key % 4 == 0 ? "-" : value_for(key)) << key;
  EXPECT_EQ(count(0), 9U);
  for (int key = 0; key < kKeys; ++key) put(2, name_of(key), "later");  // no lock has stayed

  StoreTransaction insert(at(0));
  insert.put("new", "1");
  insert.insert(name_of(1), {});
  EXPECT_EQ(cluster->end_of(insert.commit()), Status::name_taken);
  EXPECT_EQ(get(1, "new"), "-");
}

// --- deaths --------------------------------------------------------------------------------------

TEST(StoreTransactionCopies, AreBothChanged) {
  for (Rank dies = 0; dies < 3; ++dies) {
    Mortals mortals(4, 3, Mortals::network(), two_copies());
    for (int key = 0; key < kKeys; key += 3) mortals.put(3, name_of(key), "former");
    StoreTransaction transaction(mortals.at(3));
    for (int key = 0; key < kKeys; ++key) {
      if (key % 6 == 0)
        transaction.erase(name_of(key));
      else
        transaction.put(name_of(key), "of " + name_of(key));
    }
    EXPECT_EQ(mortals.end_of(transaction.commit()), Status::ok);
    mortals.world.crash(dies);
    for (int key = 0; key < kKeys; ++key)
      EXPECT_EQ(mortals.get((dies + 1) % 3, name_of(key)),
                key % 6 == 0 ? "-" : "of " + name_of(key));
  }
}

TEST(StoreTransactionCopies, KeepATimeToLive) {
  Mortals mortals(3, 3, Mortals::network(), two_copies());
  const std::string key = mortals.key_at(2);
  StoreTransaction transaction(mortals.at(0));
  transaction.put(key, "value", 200'000'000);
  EXPECT_EQ(mortals.end_of(transaction.commit()), Status::ok);
  mortals.world.crash(2);
  EXPECT_EQ(mortals.get(1, key), "value");
  mortals.world.run_for(220'000'000);
  EXPECT_EQ(mortals.get(1, key), "-");
}

/// All keys, at once, without a transaction.
std::vector<std::string> gets(Mortals& mortals, Rank by) {
  std::deque<StoreOperation> all;
  for (int key = 0; key < kFewKeys; ++key) {
    all.push_back(mortals.at(by).get(name_of(key)));
  }
  std::vector<std::string> values;
  for (StoreOperation& get : all) {
    EXPECT_EQ(remote::describe(mortals.end_of(get)), "done");
    values.emplace_back(get.text());
  }
  return values;
}

/// All keys have one value at one moment: the former or the new one.
std::string value_of_all(Mortals& mortals, Rank by) {
  std::vector<std::string> keys;
  for (int key = 0; key < kFewKeys; ++key) keys.push_back(name_of(key));
  const std::vector<std::string> values = mortals.get_at_once(by, keys);
  for (const std::string& value : values) EXPECT_EQ(value, values[0]) << "STO-C5: not whole";
  return values[0];
}

std::uint64_t time_of_a_commit() {
  Mortals mortals(5, 3, Mortals::shuffling(), two_copies());
  for (int key = 0; key < kFewKeys; ++key) mortals.put(4, name_of(key), "former");
  StoreTransaction transaction(mortals.at(3));
  for (int key = 0; key < kFewKeys; ++key) transaction.put(name_of(key), "new");
  const std::uint64_t begin_ns = mortals.world.now_ns();
  transaction.commit();
  EXPECT_EQ(mortals.end_of(transaction), Status::ok);
  return mortals.world.now_ns() - begin_ns;
}

struct Deaths {
  std::vector<Rank> of;
  /// Ways that are slow from a moment before, at the end of the commit.
  std::vector<std::pair<Rank, Rank>> slow;
};

/// One of the homes dies at any moment of a commit by member 3, or member 3, or both. No value
/// that member 4 has seen is undone.
TEST(StoreTransactionCopies, HappenWholeOrNotWhenMembersDieAtAnyMoment) {
  int happened = 0, did_not = 0, tried_again = 0;
  const std::uint64_t total_ns = time_of_a_commit();
  const std::vector<Deaths> all{
      {{0}, {}}, {{1}, {}}, {{3}, {}}, {{3, 1}, {{3, 2}, {0, 2}}}, {{3, 0}, {{3, 1}, {3, 2}}}};
  const std::uint64_t moments = test::kSanitized ? 6 : 30;
  for (const Deaths& deaths : all) {
    const std::uint64_t begin_ns = deaths.slow.empty() ? 0 : total_ns - 50'000;
    for (std::uint64_t at_ns = begin_ns; at_ns < total_ns;
         at_ns += (total_ns - begin_ns) / moments) {
      SCOPED_TRACE("member " + std::to_string(deaths.of.front()) + " of " +
                   std::to_string(deaths.of.size()) + " dies " + std::to_string(at_ns) +
                   " ns into the commit, " + std::to_string(deaths.slow.size()) + " slow");
      Mortals mortals(5, 3, Mortals::shuffling(), two_copies());
      for (int key = 0; key < kFewKeys; ++key) mortals.put(4, name_of(key), "former");
      StoreTransaction transaction(mortals.at(3));
      for (int key = 0; key < kFewKeys; ++key) transaction.put(name_of(key), "new");
      transaction.commit();
      mortals.world.run_for(at_ns);
      for (const auto& [from, to] : deaths.slow) mortals.world.slow_link(from, to, 200);
      if (!deaths.slow.empty()) mortals.world.run_for(4'000);
      const std::vector<std::string> before = gets(mortals, 4);
      for (const Rank rank : deaths.of) mortals.world.crash(rank);
      const std::vector<std::string> after = gets(mortals, 4);
      for (std::size_t key = 0; key < kFewKeys; ++key)
        EXPECT_FALSE(before[key] == "new" && after[key] == "former") << "STO-C5: undone";
      if (deaths.of.front() != 3) {
        const Status status = mortals.end_of(transaction);
        EXPECT_TRUE(status == Status::ok || status == Status::conflict) << remote::describe(status);
        EXPECT_EQ(value_of_all(mortals, 4), status == Status::ok ? "new" : "former");
        tried_again += status == Status::conflict ? 1 : 0;
      }
      const std::string value = value_of_all(mortals, 4);
      for (const std::string& seen : after)
        EXPECT_TRUE(seen == "former" || value == "new") << "STO-C5: undone";
      ++(value == "new" ? happened : did_not);
      StoreTransaction next(mortals.at(4));
      for (int key = 0; key < kFewKeys; ++key) next.put(name_of(key), "next");
      Status status = Status::conflict;  // while copies are made again
      for (int tries = 0; tries < 1'000 && status == Status::conflict; ++tries) {
        status = mortals.end_of(next.commit());
        if (status == Status::conflict) mortals.world.run_for(10'000);
      }
      EXPECT_EQ(remote::describe(status), "done");
      EXPECT_EQ(value_of_all(mortals, 4), "next");
      if (HasFailure()) return;
    }
  }
  std::cout << "of commits of " << total_ns << " ns, " << happened << " happened, " << did_not
            << " did not, " << tried_again << " have to be tried again\n";
  EXPECT_GT(happened, 0);
  EXPECT_GT(did_not, 0);
  EXPECT_GT(tried_again, 0);
}

}  // namespace
}  // namespace dunlin
