#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "support/group_member.hpp"
#include "support/histories.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// SmallBank in the simulator: tellers move money between a few accounts by transactions, while
/// some of them die, and sometimes a home with them. An auditor looks at all accounts by
/// transactions, too: what the accounts of the homes that are left hold is what the transfers say,
/// whole ones. With two copies, all accounts are left.
namespace dunlin {
namespace {

using remote::Status;
using test::Histories;

const std::uint64_t kBankSeeds = test::rounds(240);
constexpr std::uint32_t kBankAccounts = 5;
constexpr std::uint64_t kBankStart = 1'000;
constexpr std::uint64_t kSeedsPerCopies = 3;

struct BankSeen {
  std::uint64_t transfers = 0, conflicts = 0, lost = 0, audits = 0, abandoned = 0, repaired = 0,
                deaths = 0, last_audits = 0, deaths_of_homes_with_copies = 0;
};

struct Bank;

/// A member with a transaction under way, again and again.
class Teller : public test::GroupMember {
 public:
  Teller(Bank& its_bank, Rank its_rank, std::uint64_t seed);
  std::size_t step();
  void close() {
    transaction.reset();
    store.reset();
  }
  [[nodiscard]] bool idle() const { return !under_way; }
  /// What this member had under way when it died may have happened.
  void record_without_end() {
    if (under_way && is_committing_ && !wrote_.empty()) record(Histories::kNever);
  }

  Bank& bank;
  Rank rank;
  std::unique_ptr<Store> store;
  std::unique_ptr<StoreTransaction> transaction;
  bool under_way = false;
  bool stopping = false;

 private:
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void begin();
  void commit();
  void end();
  void record(std::uint64_t at);

  test::Draws draws_;
  std::vector<std::uint32_t> accounts_;
  std::vector<StoreOperation*> gets_;
  std::vector<std::uint64_t> saw_;
  std::vector<std::uint64_t> wrote_;
  bool audits_ = false;
  bool is_committing_ = false;
  std::uint64_t begin_ = 0;
};

/// A balance, and what makes each value of an account unlike all others.
std::string text_of(std::uint64_t balance, std::uint64_t number, std::size_t length) {
  std::string text = std::to_string(balance) + " " + std::to_string(number) + " ";
  text.resize(std::max(text.size(), length), '.');
  return text;
}

struct Bank {
  Bank(std::uint64_t its_seed, BankSeen& what, Histories& its_histories)
      : seed(its_seed),
        seen(what),
        histories(its_histories),
        draws(its_seed),
        homes(has_copies() ? 3 : 2 + below(2)),
        count(homes + 2),
        world(test::unfavourable_network(draws), count, its_seed),
        gone(count) {
    options.memory_bytes = kMinStoreBytes;
    options.large_bytes = 0;
    options.expected_keys = 1 + below(16);
    options.homes = !has_copies() && below(3) == 0 ? count : homes;
    options.copies = has_copies() ? 2 : 1;
    for (Rank rank = 0; rank < count; ++rank) {
      tellers.push_back(std::make_unique<Teller>(*this, rank, seed * 97 + rank));
      Teller& teller = *tellers.back();
      world.attach(rank, [&teller] { return teller.progress.poll() + teller.step(); });
    }
  }

  void run() {
    histories.begin("bank-" + std::to_string(seed), Histories::Model::transactions);
    world.run_for(200'000);
    open_accounts();
    is_open = true;
    // All of the homes, or one of them with a client, or clients only.
    const std::uint32_t deaths = below(3);
    for (std::uint32_t i = 0; i < deaths; ++i) {
      world.run_for(1 + below(200'000));
      die(i == 0 ? count - 1 - below(2) : below(count));
    }
    world.run_for(300'000);
    for (const auto& teller : tellers) teller->stopping = true;
    const bool all_ended = world.run_until([&] { return all_idle(); }, 1'000'000'000);
    EXPECT_TRUE(all_ended) << "STO-8: a transaction hangs";
    last_audit();
    for (Rank rank = 0; rank < count; ++rank) {
      seen.repaired += tellers[rank]->store->counters().at("repaired_locks");
      world.detach_all(rank);
    }
    for (const auto& teller : tellers) teller->close();
  }

  void open_accounts() {
    StoreTransaction opening(*tellers[0]->store);
    const std::uint64_t begin = ++events;
    for (std::uint64_t account = 0; account < kBankAccounts; ++account)
      opening.put(account, text_of(kBankStart, ++values, 0));
    opening.commit();
    EXPECT_TRUE(world.run_until([&] { return opening.finished(); }, 1'000'000'000));
    ASSERT_EQ(remote::describe(opening.status()), "done");
    std::string writes;
    for (std::uint64_t account = 0; account < kBankAccounts; ++account)
      writes += (account == 0 ? "" : ",") + std::to_string(account) + "=" +
                std::to_string(values - kBankAccounts + 1 + account);
    histories.transaction(0, "", writes, begin, ++events);
  }

  void die(Rank rank) {
    if (gone[rank] || !may_die(rank)) return;
    gone[rank] = true;
    ++seen.deaths;
    if (below(2) == 0) world.run_until([&] { return tellers[rank]->under_way; }, 50'000);
    world.run_for(below(30'000));
    world.crash(rank);
    if (below(4) == 0 && below(2) == 0) {  // a home at the same moment
      const Rank home = below(homes);
      if (!may_die(home)) return;
      gone[home] = true;
      world.crash(home);
    }
  }

  /// With two copies one home, and then no account is lost.
  bool may_die(Rank rank) {
    if (!has_copies() || rank >= homes) return true;
    for (Rank home = 0; home < homes; ++home)
      if (gone[home]) return false;
    ++seen.deaths_of_homes_with_copies;
    return true;
  }
  [[nodiscard]] bool has_copies() const { return seed % kSeedsPerCopies == 2; }
  [[nodiscard]] bool is_left(const Store& store, std::uint64_t account) const {
    const Rank owner = store.home_of(account);
    return owner != kNoOwner && (has_copies() || !gone[owner]);
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && tellers[rank]->is_member() && !tellers[rank]->idle()) return false;
    return true;
  }

  /// All is there still, and no lock has stayed.
  void last_audit() {
    for (const auto& teller : tellers) teller->record_without_end();
    Rank by = 0;
    while (by < count && (gone[by] || !tellers[by]->is_member())) ++by;
    if (by == count) return;
    Store& store = *tellers[by]->store;
    bool has_all = true;
    for (std::uint64_t account = 0; account < kBankAccounts; ++account)
      has_all = has_all && is_left(store, account);
    std::vector<std::uint64_t> left;
    for (std::uint64_t account = 0; account < kBankAccounts; ++account)
      if (is_left(store, account)) left.push_back(account);
    StoreTransaction audit(store);
    Status status = Status::conflict;
    std::uint64_t sum = 0, begin = 0;
    std::string reads;
    for (int attempts = 0; attempts < 1'000 && status == Status::conflict; ++attempts) {
      audit.clear();
      begin = ++events;
      std::vector<StoreOperation*> gets;
      for (const std::uint64_t account : left) gets.push_back(&audit.get(account));
      EXPECT_TRUE(world.run_until([&] { return all_finished(gets); }, 1'000'000'000))
          << "STO-8: a get of the last audit hangs";
      for (const std::uint64_t account : left)  // waits for each lock that has stayed
        if (has_all) audit.put(account, std::string(gets[account]->text()));
      audit.commit();
      EXPECT_TRUE(world.run_until([&] { return audit.finished(); }, 1'000'000'000))
          << "STO-8: the last audit hangs";
      status = audit.status();
      sum = 0;
      reads.clear();
      for (std::size_t i = 0; i < left.size(); ++i) {
        std::uint64_t balance = 0, number = 0;
        std::istringstream(std::string(gets[i]->text())) >> balance >> number;
        sum += balance;
        reads += (i == 0 ? "" : ",") + std::to_string(left[i]) + "=" + std::to_string(number);
      }
      if (status == Status::conflict) world.run_for(10'000);
    }
    if (status == Status::stopped) return;  // too many have died
    ++seen.last_audits;
    EXPECT_EQ(remote::describe(status), "done") << "STO-8, STO-C5";
    if (has_all) {
      EXPECT_EQ(sum, kBankAccounts * kBankStart) << "STO-7, STO-8";
    }
    if (!left.empty()) histories.transaction(99, reads, "", begin, ++events);
  }

  static bool all_finished(const std::vector<StoreOperation*>& gets) {
    for (const StoreOperation* const get : gets)
      if (!get->finished()) return false;
    return true;
  }

  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }

  std::uint64_t seed;
  BankSeen& seen;
  Histories& histories;
  test::Draws draws;
  std::uint32_t homes;
  std::uint32_t count;
  sim::World world;
  StoreOptions options;
  std::vector<bool> gone;
  bool is_open = false;
  std::uint64_t events = 0, values = 0;
  std::vector<std::unique_ptr<Teller>> tellers;
};

Teller::Teller(Bank& its_bank, Rank its_rank, std::uint64_t seed)
    : GroupMember(its_bank.world.fabric(its_rank)), bank(its_bank), rank(its_rank), draws_(seed) {
  store = std::make_unique<Store>(progress, bank.options);
  transaction = std::make_unique<StoreTransaction>(*store);
}

std::size_t Teller::step() {
  if (!bank.is_open) return 0;
  if (!under_way) {
    if (stopping) return 0;
    begin();
    return 1;
  }
  if (is_committing_) {
    if (!stopping && below(400) == 0) transaction->abandon();
    if (!transaction->finished()) return 0;
    end();
    return 1;
  }
  if (!Bank::all_finished(gets_)) return 0;
  commit();
  return 1;
}

void Teller::begin() {
  audits_ = below(4) == 0;
  accounts_.clear();
  const std::uint32_t first = below(kBankAccounts);
  const std::uint32_t many = audits_ ? kBankAccounts : 2 + below(2);
  for (std::uint32_t i = 0; i < many; ++i) accounts_.push_back((first + i) % kBankAccounts);
  transaction->clear();
  gets_.clear();
  begin_ = ++bank.events;
  under_way = true;
  is_committing_ = false;
  for (const std::uint32_t account : accounts_)
    gets_.push_back(&transaction->get(std::uint64_t{account}));
}

void Teller::commit() {
  saw_.clear();
  wrote_.clear();
  std::vector<std::uint64_t> balances;
  for (const StoreOperation* const get : gets_) {
    std::uint64_t balance = 0, number = 0;
    std::istringstream(std::string(get->text())) >> balance >> number;
    EXPECT_TRUE(number != 0 || get->status() != Status::ok) << "STO-3: an account is not there";
    balances.push_back(balance);
    saw_.push_back(number);
  }
  if (!audits_ && balances[0] > 0) {
    const std::uint64_t amount = 1 + below(static_cast<std::uint32_t>(balances[0]));
    balances[0] -= amount;
    balances[1] += amount;
    static const std::array<std::size_t, 3> lengths{0, 100, 1'500};
    for (std::size_t i = 0; i < 2; ++i) {
      wrote_.push_back(++bank.values);
      transaction->put(std::uint64_t{accounts_[i]},
                       text_of(balances[i], wrote_.back(), lengths.at(below(3))));
    }
  }
  is_committing_ = true;
  transaction->commit();
}

void Teller::end() {
  under_way = false;
  const Status status = transaction->status();
  const bool may_have_happened =
      status == Status::abandoned || status == Status::stopped || status == Status::lost;
  EXPECT_TRUE(may_have_happened || status == Status::ok || status == Status::conflict ||
              status == Status::no_room)
      << remote::describe(status);
  EXPECT_TRUE(status != Status::lost || !bank.has_copies()) << "STO-C5: a key is lost";
  if (status == Status::conflict) ++bank.seen.conflicts;
  if (status == Status::lost) ++bank.seen.lost;
  if (status == Status::abandoned) ++bank.seen.abandoned;
  if (status == Status::ok) ++(audits_ ? bank.seen.audits : bank.seen.transfers);
  if (status != Status::ok && !(may_have_happened && !wrote_.empty())) return;
  record(status == Status::ok ? ++bank.events : Histories::kNever);
}

void Teller::record(std::uint64_t at) {
  std::string reads, writes;
  for (std::size_t i = 0; i < saw_.size(); ++i)
    reads += (i == 0 ? "" : ",") + std::to_string(accounts_[i]) + "=" + std::to_string(saw_[i]);
  for (std::size_t i = 0; i < wrote_.size(); ++i)
    writes += (i == 0 ? "" : ",") + std::to_string(accounts_[i]) + "=" + std::to_string(wrote_[i]);
  bank.histories.transaction(rank, reads, writes, begin_, at);
}

TEST(StoreBank, KeepsAllMoneyWhateverHappens) {
  const test::Seeds seeds(kBankSeeds);
  BankSeen seen;
  Histories histories;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { Bank(seed, seen, histories).run(); });
  for (const std::uint64_t count : {seen.transfers, seen.conflicts, seen.lost, seen.audits,
                                    seen.abandoned, seen.deaths, seen.last_audits})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  // A few of forty seeds have these.
  for (const std::uint64_t count : {seen.repaired, seen.deaths_of_homes_with_copies})
    EXPECT_TRUE(count > 0 || !seeds.are_usual || seeds.last < 40) << "an audit of nothing";
  std::cout << seen.transfers << " transfers, " << seen.audits << " audits, " << seen.conflicts
            << " conflicts, " << seen.lost << " lost, " << seen.abandoned << " abandoned, "
            << seen.deaths << " deaths (" << seen.deaths_of_homes_with_copies
            << " of homes with copies), " << seen.repaired << " locks repaired\n";
  if (!Histories::why_not().empty()) return;
  const Histories::Verdict verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << "STO-7: " << verdict.text;
}

}  // namespace
}  // namespace dunlin
