#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/stores.hpp"

/// Transactions over several keys, on whatever fabric.
namespace dunlin {
namespace {

using remote::Status;

struct Transactions : test::OnStores {
  Status commit(StoreTransaction& transaction) { return cluster->end_of(transaction.commit()); }
  std::string read(StoreTransaction& transaction, StoreKey key) {
    StoreOperation& op = transaction.get(key);
    ended(op);
    return op.found() ? std::string(op.text()) : "-";
  }
  std::uint64_t balance(StoreTransaction& transaction, StoreKey key) {
    const std::string text = read(transaction, key);
    return text == "-" ? 0 : std::stoull(text);
  }
};
DUNLIN_RUN_ON(test::store_backends(), Transactions);

TEST_P(Transactions, ChangeSeveralKeysAtOnce) {
  start(3);
  put(0, "beyond", "former");
  put(0, "gone", "former");
  StoreTransaction transaction(at(1));
  transaction.put("new", "1");
  transaction.put("beyond", std::string(5'000, 'b'));
  transaction.insert("inserted", bytes("2"));
  transaction.erase("gone");
  transaction.erase("never there");
  EXPECT_EQ(transaction.changes(), 5U);
  EXPECT_EQ(get(2, "new"), "-") << "before commit()";
  EXPECT_EQ(remote::describe(commit(transaction)), "done");
  EXPECT_EQ(get(2, "new"), "1");
  EXPECT_EQ(get(0, "beyond"), std::string(5'000, 'b'));
  EXPECT_EQ(get(2, "inserted"), "2");
  EXPECT_EQ(get(2, "gone"), "-");
  EXPECT_EQ(count(0), 3U);
  put(2, "new", "2");  // no lock has stayed
  put(2, "never there", "3");
  EXPECT_TRUE(erase(2, "beyond"));
}

TEST_P(Transactions, ConflictWithWhateverHasChangedWhatTheyRead) {
  start(3);
  put(0, "read", "1");
  for (const bool is_read_only : {false, true}) {
    StoreTransaction reader(at(1));
    EXPECT_EQ(read(reader, "read"), "1");
    EXPECT_EQ(read(reader, "absent"), "-");
    if (!is_read_only) reader.put("written", "1");
    EXPECT_EQ(commit(reader), Status::ok);
    reader.clear();
    EXPECT_EQ(read(reader, "read"), "1");
    if (!is_read_only) reader.put("written", "2");
    put(2, "read", "2");
    EXPECT_EQ(commit(reader), Status::conflict);
    put(0, "read", "1");
    reader.clear();
    EXPECT_EQ(read(reader, "absent"), "-");
    if (!is_read_only) reader.put("written", "3");
    put(2, "absent", "now there");
    erase(2, "absent");
    EXPECT_EQ(commit(reader), Status::conflict) << "it was there for a moment";
  }
  EXPECT_EQ(get(0, "written"), "1");
}

TEST_P(Transactions, ConflictIfTheyChangeWhatTheyReadTooLate) {
  start(2);
  StoreTransaction one(at(0)), other(at(1));
  for (StoreTransaction* const each : {&one, &other})
    each->put("counter", std::to_string(balance(*each, "counter") + 1));
  EXPECT_EQ(commit(one), Status::ok);
  EXPECT_EQ(commit(other), Status::conflict);
  EXPECT_EQ(get(0, "counter"), "1");
}

TEST_P(Transactions, SeeTheirOwnChanges) {
  start(2);
  put(0, "key", "before");
  StoreTransaction transaction(at(1));
  transaction.put("key", "after");
  EXPECT_EQ(read(transaction, "key"), "after");
  transaction.erase("key");
  EXPECT_EQ(read(transaction, "key"), "-");
  transaction.put("key", "at last");
  EXPECT_EQ(transaction.changes(), 1U);
  EXPECT_EQ(get(0, "key"), "before");
  EXPECT_EQ(commit(transaction), Status::ok);
  EXPECT_EQ(get(0, "key"), "at last");
}

TEST_P(Transactions, DoNothingIfTheKeyOfAnInsertIsThere) {
  start(2);
  put(0, "there", "before");
  StoreTransaction transaction(at(1));
  transaction.put("other", "1");
  transaction.insert("there", bytes("2"));
  EXPECT_EQ(commit(transaction), Status::name_taken);
  EXPECT_EQ(get(0, "there"), "before");
  EXPECT_EQ(get(0, "other"), "-");
}

TEST_P(Transactions, OverTheirLimitsChangeNothing) {
  start(2);
  StoreTransaction transaction(at(0));
  for (std::uint64_t key = 0; key <= kMaxTransactionWrites; ++key) transaction.put(key, "value");
  EXPECT_EQ(commit(transaction), Status::out_of_range);
  transaction.clear();
  transaction.put(std::string(kMaxStoreKeyBytes + 1, 'k'), "value");
  transaction.put("other", "value");
  EXPECT_EQ(commit(transaction), Status::too_long);
  EXPECT_EQ(count(0), 0U);
  transaction.clear();
  EXPECT_EQ(commit(transaction), Status::ok) << "of nothing";
}

/// One main header: all keys are in one chain, which overflows within a transaction.
TEST_P(Transactions, ChangeManyKeysOfOneChain) {
  StoreOptions options = test::small_store();
  options.expected_keys = 1;
  options.homes = 1;
  start(2, options);
  for (std::uint64_t round = 0; round < 3; ++round) {
    StoreTransaction transaction(at(1));
    for (std::uint64_t key = 0; key < kMaxTransactionWrites; ++key)
      transaction.put(round * 100 + key, std::to_string(key));
    ASSERT_EQ(remote::describe(commit(transaction)), "done");
  }
  for (std::uint64_t round = 0; round < 3; ++round)
    for (std::uint64_t key = 0; key < kMaxTransactionWrites; ++key)
      EXPECT_EQ(get(0, round * 100 + key), std::to_string(key));
  EXPECT_EQ(count(0), 3 * kMaxTransactionWrites);
  StoreTransaction transaction(at(0));
  for (std::uint64_t key = 0; key < kMaxTransactionWrites; ++key) transaction.erase(key);
  EXPECT_EQ(commit(transaction), Status::ok);
  EXPECT_EQ(count(0), 2 * kMaxTransactionWrites);
}

TEST_P(Transactions, ThatAreGivenUpHappenAsAWholeOrNot) {
  start(3);
  put(0, "one", "0");
  put(0, "two", "0");
  for (int rounds = 0; rounds < 25; ++rounds) {
    const std::string value = std::to_string(rounds + 1);
    {
      StoreTransaction transaction(at(0));
      transaction.put("one", value);
      transaction.put("two", value);
      transaction.commit();
      cluster->pass(rounds);
    }
    StoreTransaction look(at(1));
    Status status = Status::conflict;
    std::string one, two;
    for (int attempts = 0; status == Status::conflict && attempts < 10'000; ++attempts) {
      look.clear();
      one = read(look, "one");
      two = read(look, "two");
      status = commit(look);
      cluster->pass(1);  // calls that end at once let nobody else go on
    }
    ASSERT_EQ(remote::describe(status), "done");
    EXPECT_EQ(one, two) << "STO-9";
    put(2, "one", value);
    put(2, "two", value);
  }
}

TEST_P(Transactions, MoreThanAMemberHasRecordsWaitForOneAnother) {
  start(2);
  constexpr std::uint64_t kMany = 12;
  std::vector<std::unique_ptr<StoreTransaction>> all;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<StoreTransaction>(at(0)));
    all.back()->put("shared", std::to_string(i));
    for (std::uint64_t key = 0; key < 4; ++key) all.back()->put(i * 10 + key, std::to_string(i));
    all.back()->commit();
  }
  for (const auto& transaction : all)
    EXPECT_EQ(remote::describe(cluster->end_of(*transaction)), "done");
  EXPECT_EQ(count(1), 4 * kMany + 1);
}

/// All members move money, at once, between accounts that are here and there.
TEST_P(Transactions, KeepTheSumOfAllAccounts) {
  constexpr std::uint64_t kAccounts = 6, kStart = 100;
  start(3);
  for (std::uint64_t key = 0; key < kAccounts; ++key) put(0, key, std::to_string(kStart));
  struct Mover {
    std::unique_ptr<StoreTransaction> transfer;
    std::uint64_t from = 0, to = 0, amount = 0, done = 0;
    StoreOperation* gets[2] = {};
    bool is_committing = false;
  };
  std::vector<Mover> tellers(3);
  std::mt19937_64 random(11);
  std::uint64_t conflicts = 0;
  const auto begin = [&](Mover& teller, bool again) {
    if (!again) {
      teller.from = random() % kAccounts;
      teller.to = (teller.from + 1 + random() % (kAccounts - 1)) % kAccounts;
      teller.amount = 1 + random() % 20;
    }
    teller.transfer->clear();
    teller.gets[0] = &teller.transfer->get(teller.from);
    teller.gets[1] = &teller.transfer->get(teller.to);
    teller.is_committing = false;
  };
  for (Rank rank = 0; rank < 3; ++rank) {
    tellers[rank].transfer = std::make_unique<StoreTransaction>(at(rank));
    begin(tellers[rank], false);
  }
  ASSERT_TRUE(cluster->until([&] {
    bool all = true;
    for (Mover& teller : tellers) {
      if (teller.done == 20) continue;
      all = false;
      if (teller.is_committing && teller.transfer->finished()) {
        const Status status = teller.transfer->status();
        EXPECT_TRUE(status == Status::ok || status == Status::conflict) << describe(status);
        (status == Status::ok ? teller.done : conflicts) += 1;
        if (teller.done < 20) begin(teller, status != Status::ok);
      } else if (!teller.is_committing && teller.gets[0]->finished() &&
                 teller.gets[1]->finished()) {
        const std::uint64_t has = std::stoull(std::string(teller.gets[0]->text()));
        const std::uint64_t other = std::stoull(std::string(teller.gets[1]->text()));
        const std::uint64_t amount = std::min(teller.amount, has);
        teller.transfer->put(teller.from, std::to_string(has - amount));
        teller.transfer->put(teller.to, std::to_string(other + amount));
        teller.transfer->commit();
        teller.is_committing = true;
      }
    }
    return all;
  }));
  std::uint64_t sum = 0;
  for (std::uint64_t key = 0; key < kAccounts; ++key) sum += std::stoull(get(1, key));
  EXPECT_EQ(sum, kAccounts * kStart) << "STO-7";
  EXPECT_GT(conflicts, 0U) << "nobody was in anybody's way";
}

}  // namespace
}  // namespace dunlin
