#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <dunlin/group.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/trial_records.hpp"
#include "support/fresh_group.hpp"
#include "support/group_member.hpp"
#include "support/process.hpp"
#include "support/seeds.hpp"

/// Real processes that share a store with two copies of each key. kill -9 removes one of them, a
/// later member takes its place, and slots move to it and between the others while the next one is
/// killed. `DUNLIN_SEEDS="1 42"` makes 504 kills.
namespace dunlin {
namespace {

using remote::Status;
using test::kPatienceMs;
using test::NodeBackend;
using test::Parent;
using test::Process;
using test::TrialBank;

constexpr std::uint32_t kFounders = 5;
constexpr std::uint32_t kKills = 12;                  // of one group
constexpr std::uint32_t kSeats = kFounders + kKills;  // processes, over the life of a group
constexpr std::uint32_t kMostRanks = 2 * kSeats;      // joins that fail use ranks up, too
constexpr std::size_t kKeys = 24;                     // of each member
constexpr std::uint64_t kMostPuts = 400;              // between two kills
constexpr std::uint64_t kPatienceNs = std::uint64_t{kPatienceMs} * 1'000'000;

/// What all processes see.
struct Shared {
  struct Key {
    std::atomic<std::uint64_t> begun{0}, ended{0};  // numbers of puts
    std::atomic<std::uint32_t> places{0};           // members that have it in the end
  };
  struct Seat {
    std::array<Key, kKeys> keys;
    std::atomic<Rank> rank{kNoOwner};       // once the process is a member
    std::atomic<std::uint32_t> checked{0};  // after so many deaths
    std::atomic<std::uint32_t> phase{0};    // that it has reached
  };
  std::array<Seat, kSeats> seats;
  std::array<std::atomic<Rank>, kKills> dead{};
  std::atomic<std::uint32_t> deaths{0};  // that are over
  std::atomic<std::uint64_t> puts{0}, transfers{0}, audits{0}, moved{0};
  std::atomic<std::uint32_t> phase{0};  // 1: all stop; 2: nothing moves any more; 3: all have told
  std::atomic<bool> is_open{false};     // the accounts are there
  std::atomic<bool> is_over{false};     // a process has given up
};

class SharedPages {
 public:
  SharedPages()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages() { munmap(shared_, sizeof(Shared)); }
  Shared& operator*() const { return *shared_; }

 private:
  Shared* shared_;
};

std::string name_of(std::uint32_t seat, std::size_t key) {
  return std::to_string(seat) + "/" + std::to_string(key);
}

/// The life of one process. Each function returns what has gone wrong; nothing if all is well.
class Worker {
 public:
  Worker(std::unique_ptr<Group> group, std::uint32_t seat, std::uint64_t seed, Shared& shared)
      : shared_(shared),
        seat_(seat),
        random_(seed),
        member_(std::move(group), kMostRanks),
        store_(member_.progress, options(seat)) {
    mine().rank = member_.progress.fabric().rank();
  }

  std::string open_accounts() {
    for (std::size_t account = 0; account < TrialBank::kAccounts; ++account)
      if (std::string wrong =
              end_of(store_.put(TrialBank::name_of(account),
                                TrialBank::text_of({.balance = TrialBank::kStart}, 0)),
                     "an account");
          !wrong.empty())
        return wrong;
    shared_.is_open = true;
    return {};
  }
  /// Until it is killed, or all are to stop.
  std::string work() {
    for (std::uint64_t number = 1; shared_.phase == 0; ++number) {
      if (shared_.is_over) return "goes on";
      std::string wrong = put(number);
      if (wrong.empty() && shared_.is_open && number % 8 == 0) wrong = transfer();
      if (wrong.empty() && shared_.deaths != mine().checked) wrong = see_deaths();
      if (!wrong.empty()) return wrong;
      if (number % 512 == 0) store_.set_weight(1 + static_cast<std::uint32_t>(random_() % 8));
    }
    return end();
  }
  [[nodiscard]] std::string state() const { return store_.describe_moves(); }

 private:
  static StoreOptions options(std::uint32_t seat) {
    StoreOptions options = test::two_copies();
    options.contributes = seat >= kFounders;
    options.memory_bytes = 8 << 20;
    return options;
  }
  Shared::Seat& mine() { return shared_.seats.at(seat_); }
  template <class Operation>
  static std::string end_of(Operation&& operation, std::string_view what) {
    if (operation.wait(kPatienceNs) == Status::ok) return {};
    return std::string(what) + ": " + std::string(remote::describe(operation.status()));
  }

  std::string put(std::uint64_t number) {
    const std::size_t key = number % kKeys;
    Shared::Key& known = mine().keys.at(key);
    known.begun = number;
    const std::string value = std::to_string(number) + " " + std::string(number % 7 * 60, '.');
    if (std::string wrong = end_of(store_.put(name_of(seat_, key), value), "a put"); !wrong.empty())
      return wrong;
    known.ended = number;
    ++shared_.puts;
    return {};
  }

  /// Moves money between two accounts, or looks at all of them, until nothing is in its way.
  std::string transfer() {
    const bool audits = random_() % 4 == 0;
    const std::size_t many = audits ? TrialBank::kAccounts : 2;
    const std::size_t first = random_() % TrialBank::kAccounts;
    StoreTransaction transaction(store_);
    Status status = Status::conflict;
    while (status == Status::conflict) {
      transaction.clear();
      std::vector<TrialBank::Account> accounts;
      std::vector<StoreOperation*> gets;
      for (std::size_t i = 0; i < many; ++i)
        gets.push_back(&transaction.get(TrialBank::name_of((first + i) % TrialBank::kAccounts)));
      for (StoreOperation* const get : gets) {
        if (std::string wrong = end_of(*get, "a get of an account"); !wrong.empty()) return wrong;
        if (!get->found()) return "STO-C1: an account is lost";
        accounts.push_back(TrialBank::account_of(get->text()));
      }
      if (!audits && accounts[0].balance > 0) {
        --accounts[0].balance;
        ++accounts[1].balance;
        for (std::size_t i = 0; i < many; ++i)
          transaction.put(TrialBank::name_of((first + i) % TrialBank::kAccounts),
                          TrialBank::text_of(accounts[i], 0));
      }
      status = transaction.commit().wait(kPatienceNs);
      std::uint64_t sum = 0;
      for (const TrialBank::Account& account : accounts) sum += account.balance;
      if (audits && status == Status::ok && sum != TrialBank::kAccounts * TrialBank::kStart)
        return "STO-7: the accounts have " + std::to_string(sum);
    }
    if (status != Status::ok) return "a commit: " + std::string(remote::describe(status));
    ++(audits ? shared_.audits : shared_.transfers);
    return {};
  }

  std::string see_deaths() {
    const std::uint32_t deaths = shared_.deaths;
    if (!await([&] {
          for (std::uint32_t i = 0; i < deaths; ++i)
            if (member_.progress.contains(shared_.dead.at(i))) return false;
          return store_.statistics().copies_complete;
        }))
      return "STO-C4: copies are not restored";
    if (std::string wrong = check(); !wrong.empty()) return wrong;
    mine().checked = deaths;
    return {};
  }
  bool await(const std::function<bool()>& ready) {
    const std::uint64_t end = store_.fabric().now_ns() + kPatienceNs;
    while (!ready()) {
      if (store_.poll() == 0) std::this_thread::yield();
      if (store_.fabric().now_ns() > end) return false;
    }
    return true;
  }
  /// All keys of all members, dead ones included.
  std::string check() {
    for (std::uint32_t seat = 0; seat < kSeats; ++seat)
      for (std::size_t key = 0; key < kKeys; ++key) {
        const Shared::Key& known = shared_.seats.at(seat).keys.at(key);
        const std::uint64_t least = known.ended;
        if (known.begun == 0) continue;
        auto get = store_.get(name_of(seat, key));
        if (std::string wrong = end_of(get, "a get"); !wrong.empty()) return wrong;
        const std::uint64_t found = get.found() ? std::stoull(std::string(get.text())) : 0;
        if (found < least || found > known.begun)
          return "STO-C1: key " + name_of(seat, key) + " has value " + std::to_string(found) +
                 ", and put " + std::to_string(least) + " had ended";
      }
    return {};
  }

  std::string end() {
    if (!reaches(1)) return "goes on";
    if (std::string wrong = end_of(store_.settle(), "a settle"); !wrong.empty()) return wrong;
    if (std::string wrong = check(); !wrong.empty()) return wrong;
    if (!reaches(2)) return "goes on";
    for (std::uint32_t seat = 0; seat < kSeats; ++seat)
      for (std::size_t key = 0; key < kKeys; ++key) names_[name_of(seat, key)] = {seat, key};
    store_.for_each_local([this](const StoreEntry& entry) {
      const auto found = names_.find(test::Mortals::text_of(entry.key));
      if (found != names_.end())
        ++shared_.seats.at(found->second.first).keys.at(found->second.second).places;
    });
    shared_.moved += store_.counters().at("keys_moved");
    return reaches(3) ? "" : "goes on";
  }
  /// All others have reached that phase, too.
  bool reaches(std::uint32_t phase) {
    mine().phase = phase;
    return await([&] { return shared_.phase > phase || shared_.is_over; }) && !shared_.is_over;
  }

  Shared& shared_;
  std::uint32_t seat_;
  std::mt19937_64 random_;
  test::GroupMember member_;
  Store store_;
  std::map<std::string, std::pair<std::uint32_t, std::size_t>> names_;
};

struct StoreReplacements : test::OnProcesses {
  void SetUp() override {
    members = kFounders;
    test::OnProcesses::SetUp();
  }
};

/// The processes of a store. The parent.
class Replacing {
 public:
  Replacing(const StoreReplacements& test, std::uint64_t seed) : test_(test), random_(seed) {
    for (std::uint32_t seat = 0; seat < kFounders; ++seat) start();
    for (const std::uint32_t seat : left_) EXPECT_EQ(processes_[seat]->receive_line(), "works");
  }
  [[nodiscard]] Shared& shared() const { return *pages_; }
  void run() {
    for (std::uint32_t kills = 0; kills < kKills && !testing::Test::HasFailure(); ++kills) {
      const std::uint64_t until = shared().puts + random_() % kMostPuts;
      wait_until([&] { return shared().puts >= until; });
      kill_one();
      if (testing::Test::HasFailure()) return;
      start();
      const std::uint32_t seat = left_.back();
      wait_until([&] { return shared().seats.at(seat).rank != kNoOwner; });
      EXPECT_EQ(processes_[seat]->receive_line(), "works");
    }
    if (!testing::Test::HasFailure()) end();
  }

 private:
  void start() {
    const auto seat = static_cast<std::uint32_t>(processes_.size());
    const std::uint64_t seed = random_();
    left_.push_back(seat);
    processes_.push_back(std::make_unique<Process>([&, seat, seed](Parent& parent) {
      const Rank place = std::min(seat, kFounders);
      const GroupOptions options{.rendezvous = test_.rendezvous(place)};
      std::unique_ptr<Fabric> fabric;
      std::unique_ptr<Group> group;
      if (seat < kFounders) {
        fabric = test_.join(seat);
        group = std::make_unique<Group>(*fabric, options);
      } else {
        group = Group::join("late" + std::to_string(seat), options, kPatienceMs);
      }
      Worker worker(std::move(group), seat, seed, shared());
      std::string wrong = seat == 0 ? worker.open_accounts() : "";
      if (wrong.empty()) {
        parent.send_line("works");
        wrong = worker.work();
      }
      parent.send_line(wrong.empty() ? "is well" : wrong + "; " + worker.state());
      return wrong.empty() ? 0 : 1;
    }));
  }
  /// A member that works ends only if it is killed. So `ready` comes, or a member that ends.
  void wait_until(const std::function<bool()>& ready) {
    std::vector<pollfd> news;
    const std::size_t last = processes_.size() - 1;
    for (const std::uint32_t seat : left_)
      if (seat != last || shared().seats.at(seat).rank != kNoOwner)
        news.push_back({processes_[seat]->descriptor(), POLLIN, 0});
    while (!ready()) {
      if (poll(news.data(), news.size(), 1) <= 0) continue;
      shared().is_over = true;  // and all tell their states
      std::string text;
      for (const std::uint32_t seat : left_)
        text += "\nmember " + std::to_string(seat) + ": " + processes_[seat]->receive_line();
      FAIL() << text;
    }
  }
  /// Any of them; then the others have looked at all keys.
  void kill_one() {
    if (testing::Test::HasFailure()) return;
    const auto dies = left_.begin() + static_cast<std::ptrdiff_t>(random_() % left_.size());
    processes_[*dies]->kill();
    shared().dead.at(shared().deaths) = shared().seats.at(*dies).rank.load();
    left_.erase(dies);
    const std::uint32_t deaths = ++shared().deaths;
    wait_until([&] {
      return std::ranges::all_of(
          left_, [&](std::uint32_t seat) { return shared().seats.at(seat).checked == deaths; });
    });
  }
  void end() {
    for (std::uint32_t phase = 1; phase <= 3 && !testing::Test::HasFailure(); ++phase) {
      if (phase == 1) shared().phase = 1;
      wait_until([&] {
        return std::ranges::all_of(
            left_, [&](std::uint32_t seat) { return shared().seats.at(seat).phase >= phase; });
      });
      if (!testing::Test::HasFailure()) shared().phase = phase + 1;
    }
    if (testing::Test::HasFailure()) return;
    for (const std::uint32_t seat : left_) EXPECT_EQ(processes_[seat]->receive_line(), "is well");
    for (std::uint32_t seat = 0; seat < kSeats; ++seat)
      for (std::size_t key = 0; key < kKeys; ++key) {
        const Shared::Key& known = shared().seats.at(seat).keys.at(key);
        EXPECT_LE(known.places, 1U) << "STO-C3: key " << name_of(seat, key) << " is there twice";
        EXPECT_TRUE(known.ended == 0 || known.places == 1)
            << "STO-C1: key " << name_of(seat, key) << " is lost";
      }
  }

  const StoreReplacements& test_;
  std::mt19937_64 random_;
  SharedPages pages_;
  std::vector<std::unique_ptr<Process>> processes_;  // by seat
  std::vector<std::uint32_t> left_;
};

TEST_P(StoreReplacements, NothingIsLostThatWasPutWhileKilledMembersAreReplaced) {
  std::uint64_t kills = 0, puts = 0, transfers = 0, audits = 0, moved = 0;
  test::for_each_seed(test::Seeds(1), [&](std::uint64_t seed) {
    name = test::fresh_group();
    Replacing replacing(*this, seed);
    replacing.run();
    const Shared& shared = replacing.shared();
    kills += shared.deaths;
    puts += shared.puts;
    transfers += shared.transfers;
    audits += shared.audits;
    moved += shared.moved;
  });
  std::cout << kills << " kills amid " << puts << " puts, " << transfers << " transfers and "
            << audits << " audits; those that were left moved " << moved << " keys\n";
}

DUNLIN_RUN_ON(test::backends_of({"Shm"}), StoreReplacements);

}  // namespace
}  // namespace dunlin
