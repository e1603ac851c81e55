// Three processes move money between accounts in the memory of all of them, by transactions over
// two keys; in the end all of it is still there: ./bank & ./bank & ./bank

#include <iostream>
#include <string>

#include <dunlin/node.hpp>

namespace {

using Transaction = dunlin::StoreHandle::Transaction;
constexpr std::uint64_t kAccounts = 16, kRounds = 200;
constexpr std::int64_t kEach = 1'000;

struct Row {
  int step;
};
std::string account(std::uint64_t number) { return "account/" + std::to_string(number); }
std::int64_t balance(Transaction& transaction, std::uint64_t number) {
  return std::stoll(transaction.get(account(number)).value());
}

}  // namespace

int main() try {
  dunlin::Node node = dunlin::Node::join({.group = "example-bank", .members = 3});
  dunlin::StoreHandle store = node.store("bank", {.memory_bytes = 4 << 20, .large_bytes = 0});
  auto steps = node.table<Row>("steps");
  const auto meet = [&](int step) {
    steps.update([&](Row& mine) { mine.step = step; }, &Row::step);
    steps.until(dunlin::all(&Row::step) >= step).get();
  };
  for (std::uint64_t number = node.rank(); number < kAccounts; number += 3)
    store.put(account(number), std::to_string(kEach)).get();
  meet(1);  // the bank is open

  int moves = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t from = (node.rank() + round) % kAccounts;
    const std::uint64_t to = (from + 1 + round % 3) % kAccounts;
    const auto moved = store.transact([&](Transaction& transaction) {
      if (balance(transaction, from) < 10) return transaction.cancel();
      transaction.put(account(from), std::to_string(balance(transaction, from) - 10));
      transaction.put(account(to), std::to_string(balance(transaction, to) + 10));
    });
    if (moved) ++moves;
  }
  std::int64_t sum = 0;
  const auto audited = store.transact([&](Transaction& audit) {  // while others still move money
    sum = 0;
    for (std::uint64_t number = 0; number < kAccounts; ++number) sum += balance(audit, number);
  });
  meet(2);  // a member that left would take its accounts along
  std::cout << moves << " moves, and all accounts hold " << sum << '\n';
  return audited && sum == static_cast<std::int64_t>(kAccounts) * kEach ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "bank: " << error.what() << '\n';
  return 1;
}
