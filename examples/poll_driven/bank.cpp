// Three processes share a bank, after SmallBank: checking and savings accounts in the memory of all
// of them. Each moves money by transactions over several keys at once, and in the end all of it is
// still there. Start it three times:
//
//     ./bank & ./bank & ./bank

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>

#include <dunlin/join.hpp>
#include <dunlin/store.hpp>

namespace {

constexpr std::uint64_t kCustomers = 8;
constexpr std::int64_t kEach = 1'000;  // on each of the two accounts
constexpr int kRounds = 200;

std::string checking(std::uint64_t customer) { return "checking/" + std::to_string(customer); }
std::string savings(std::uint64_t customer) { return "savings/" + std::to_string(customer); }

std::int64_t balance(dunlin::StoreTransaction& transaction, const std::string& account) {
  return std::stoll(std::string(transaction.get(account).outcome().text()));
}
void add(dunlin::StoreTransaction& transaction, const std::string& account, std::int64_t amount) {
  transaction.put(account, std::to_string(balance(transaction, account) + amount));
}

/// From one account to another, if it is covered.
dunlin::TransactionAction move(dunlin::StoreTransaction& transaction, const std::string& from,
                               const std::string& to, std::int64_t amount) {
  if (balance(transaction, from) < amount) return dunlin::TransactionAction::cancel;
  add(transaction, from, -amount);
  add(transaction, to, amount);
  return dunlin::TransactionAction::commit;
}

/// All that a customer has goes to another one's checking account.
dunlin::TransactionAction amalgamate(dunlin::StoreTransaction& transaction, std::uint64_t from,
                                     std::uint64_t to) {
  const std::int64_t all =
      balance(transaction, checking(from)) + balance(transaction, savings(from));
  transaction.put(checking(from), "0");
  transaction.put(savings(from), "0");
  add(transaction, checking(to), all);
  return dunlin::TransactionAction::commit;
}

/// Adds up all accounts, as they are at one moment.
std::int64_t sum_of_all(dunlin::Store& store) {
  std::int64_t sum = 0;
  const auto status = dunlin::run_transaction(store, [&](dunlin::StoreTransaction& audit) {
    sum = 0;
    for (std::uint64_t customer = 0; customer < kCustomers; ++customer)
      sum += balance(audit, checking(customer)) + balance(audit, savings(customer));
    return dunlin::TransactionAction::commit;
  });
  if (status != dunlin::remote::Status::ok)
    throw dunlin::Error(std::string(dunlin::remote::describe(status)));
  return sum;
}

/// Waits until all processes have called it, or one of them has left after it had waited.
void meet(dunlin::Store& store, const std::string& where, std::uint32_t members) {
  const auto count = [&](std::optional<std::span<const std::byte>> before, std::string& text) {
    const std::string old =
        before ? std::string(reinterpret_cast<const char*>(before->data()), before->size()) : "0";
    text = std::to_string(std::stoul(old) + 1);
    return dunlin::StoreUpdate::put(text);
  };
  std::string text;  // stays until the operation has ended
  store.update(where, [&](auto before) { return count(before, text); }).wait();
  for (;;) {
    auto get = store.get(where);
    if (!get.outcome().ok() || get.text() == std::to_string(members)) return;
    store.poll();
  }
}

}  // namespace

int main() try {
  constexpr std::uint32_t kMembers = 3;
  const auto fabric = dunlin::join({.group = "example-bank", .members = kMembers});
  dunlin::Store store(*fabric, {.memory_bytes = 4 << 20, .large_bytes = 0});
  if (fabric->rank() == 0)
    for (std::uint64_t customer = 0; customer < kCustomers; ++customer) {
      store.put(checking(customer), std::to_string(kEach)).wait();
      store.put(savings(customer), std::to_string(kEach)).wait();
    }
  meet(store, "open", kMembers);

  int done = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t one = (fabric->rank() + static_cast<std::uint64_t>(round)) % kCustomers;
    const std::uint64_t other = (one + 1 + static_cast<std::uint64_t>(round) % 3) % kCustomers;
    const auto status = dunlin::run_transaction(store, [&](dunlin::StoreTransaction& transaction) {
      if (round % 3 == 0) return amalgamate(transaction, one, other);
      return round % 3 == 1 ? move(transaction, checking(one), checking(other), 10)
                            : move(transaction, checking(one), savings(one), 50);
    });
    if (status == dunlin::remote::Status::ok) ++done;
  }
  const std::int64_t sum = sum_of_all(store);  // while others still move money
  meet(store, "closed", kMembers);

  std::cout << done << " transactions, and all accounts hold " << sum << "\n";
  return done > 0 && sum == static_cast<std::int64_t>(2 * kCustomers) * kEach ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "bank: " << error.what() << "\n";
  return 1;
}
