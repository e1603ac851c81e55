#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/trial_members.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Long trials in the simulator: members of a store with two copies of each key come, leave, drain,
/// get other weights, sleep, die and are replaced, amid calls of all members. Nothing that was
/// said is taken back, and in the end each key is there once.
///
/// DUNLIN_TRIAL_SECONDS says for how many seconds of virtual time the trials go on in all, and
/// DUNLIN_SEEDS="7 7" replays the trial of seed 7.
namespace dunlin {
namespace {

using remote::Status;
using test::TrialMember;
using test::TrialSeen;
using test::TrialState;

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::uint64_t kSecondNs = 1'000 * kMillisecondNs;
constexpr std::uint64_t kPatienceNs = 20 * kSecondNs;
constexpr std::size_t kMostNodes = 40;    // over the life of a group
constexpr std::uint32_t kMostRanks = 64;  // joins that fail use ranks up, too
constexpr std::size_t kMostMembers = 8;
constexpr std::size_t kFewestMembers = 5;  // so that those that are left are a majority
constexpr std::size_t kFewestHolders = 3;
constexpr std::size_t kKeysThatChange = 60;
constexpr std::uint64_t kBusyNs = kMillisecondNs / 2;  // after each event
constexpr std::uint64_t kSilenceNs = 20 * kMillisecondNs;

class Trial {
 public:
  Trial(std::uint64_t seed, TrialSeen& seen, std::uint64_t most_ns)
      : draws_(seed),
        founders_(kFewestMembers + below(2)),
        world_(network(), founders_, seed),
        seen_(seen),
        ends_ns_(std::min<std::uint64_t>((2 + below(9)) * kSecondNs, most_ns)) {
    options_.memory_bytes = 4 << 20;
    options_.large_bytes = 0;
    options_.slots = 32U << below(3);
    options_.expected_keys = 8;
    options_.cache_bytes = below(3) == 0 ? 0 : 4096;
    options_.copies = 2;
    if (below(2) == 0) options_.move_bytes_per_second = 4'000'000;
    for (Rank rank = 0; rank < founders_; ++rank)
      add(rank).begin(std::make_unique<test::StoreMember>(
          std::make_unique<Group>(world_.fabric(rank),
                                  GroupOptions{.rendezvous = world_.rendezvous(rank, "sim")}),
          kMostRanks, options_));
  }
  ~Trial() {
    world_.end();
    for (Rank rank = 0; rank < members_.size(); ++rank) world_.detach_all(rank);
    while (!members_.empty()) members_.back()->close(), members_.pop_back();
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Returns how long it went on, in virtual time.
  std::uint64_t run() {
    put_what_stays();
    state_.is_open = true;
    while (world_.now_ns() < ends_ns_ && !is_used_up() && !testing::Test::HasFailure()) {
      let_time_pass();
      let_something_happen();
    }
    if (!testing::Test::HasFailure()) end();
    if (testing::Test::HasFailure()) std::cout << story() << std::flush;
    for (const auto& member : members_) count_what(*member);
    return world_.now_ns();
  }

 private:
  /// As in test::unfavourable_network(), but silence is noticed late: so a trial of an hour has
  /// few heartbeats.
  sim::Profile network() {
    sim::Profile network = test::unfavourable_network(draws_);
    network.heartbeat_interval_ns = 4 * kMillisecondNs;
    network.silence_timeout_ns = kSilenceNs;
    return network;
  }
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  TrialMember& add(Rank node) {
    members_.push_back(std::make_unique<TrialMember>(state_, world_, node, draws_.below(1 << 30)));
    TrialMember& member = *members_.back();
    world_.attach(node, [&member] { return member.poll(); });
    return member;
  }
  template <class Operation>
  void await(Operation&& operation, const char* what) {
    EXPECT_TRUE(world_.run_until([&] { return operation.finished(); }, kPatienceNs))
        << what << " hangs";
    ASSERT_EQ(remote::describe(operation.status()), "done") << what;
  }
  Store& store_of(Rank node) { return members_[node]->member().store; }

  void put_what_stays() {
    for (int key = 0; key < TrialState::kStill; ++key)
      await(store_of(0).put(test::name_of(key), "still " + test::name_of(key)), "the first put");
    for (std::size_t account = 0; account < test::TrialBank::kAccounts; ++account)
      await(store_of(0).put(test::TrialBank::name_of(account),
                            test::TrialBank::text_of({.balance = test::TrialBank::kStart}, 0)),
            "an account");
  }

  // --- what happens ------------------------------------------------------------------------------

  /// Most events come while what the former ones began goes on.
  void let_time_pass() {
    const std::uint32_t kind = below(4);
    const std::uint64_t ns = kind < 2    ? below(300'000)
                             : kind == 2 ? below(5 * kMillisecondNs)
                                         : below(1'000 * kMillisecondNs);
    state_.busy_until_ns = world_.now_ns() + std::min<std::uint64_t>(ns, kBusyNs);
    const std::uint64_t until = world_.now_ns() + ns;
    while (world_.now_ns() < until && !testing::Test::HasFailure())
      world_.run_for(std::min(until - world_.now_ns(), kMillisecondNs));
  }

  void let_something_happen() {
    state_.busy_until_ns = world_.now_ns() + kBusyNs;
    switch (below(12)) {
      case 0:
      case 1:
        return let_one_join();
      case 2:
        return let_one_leave();
      case 3:
        return let_one_drain();
      case 4:
      case 5:
        return let_one_weigh_other();
      case 6:
      case 7:
      case 8:
        return let_one_die();
      case 9:
        return let_one_sleep();
      case 10:
        return let_one_be_slow();
      default:
        return members_[below(static_cast<std::uint32_t>(members_.size()))]->begin_scan();
    }
  }

  void let_one_join() {
    if (present().size() + joining() >= kMostMembers || is_used_up()) return;
    const Rank rank = world_.add_node();
    StoreOptions options = options_;
    options.contributes = below(5) > 0;
    tell("member " + std::to_string(rank) +
         (options.contributes ? " joins" : " joins as a client"));
    TrialMember& member = add(rank);
    world_.on(rank, [&member, options] { member.join(options, kMostRanks); });
    ++seen_.joins;
  }
  void let_one_leave() {
    TrialMember* const one = drawn(present());
    if (one == nullptr || one->is_leaving() || present().size() <= kFewestMembers ||
        holders_without(*one) < kFewestHolders)
      return;
    tell("member " + std::to_string(one->node()) + " leaves");
    one->ask_to_leave();
    world_.on(one->node(), [one] { one->leave(); });
  }
  void let_one_drain() {
    TrialMember* const one = drawn(present());
    if (one == nullptr || one->is_leaving() || holders_without(*one) < kFewestHolders) return;
    tell("member " + std::to_string(one->node()) + " drains");
    ++seen_.drains;
    set_weight(*one, 0);
  }
  void let_one_weigh_other() {
    TrialMember* const one = drawn(present());
    if (one == nullptr || one->is_leaving()) return;
    const std::uint32_t weight = 1 + below(8);
    tell("member " + std::to_string(one->node()) + " has weight " + std::to_string(weight));
    set_weight(*one, weight);
  }
  void set_weight(TrialMember& member, std::uint32_t weight) {
    world_.on(member.node(), [&member, weight] {
      if (!member.is_leaving()) member.member().store.set_weight(weight);
    });
  }
  /// Only while each key has both copies, and all know of all who have died before.
  void let_one_die() {
    TrialMember* const one = drawn(present());
    const auto is_enough = [&] {
      return present().size() >= kFewestMembers && holders_without(*one) + 1 > kFewestHolders;
    };
    if (one == nullptr || !is_enough()) return;
    if (below(4) > 0) {
      let_one_weigh_other();
      await_moves();
    }
    if (below(2) == 0) world_.run_until([&] { return one->writes(); }, 50'000);
    world_.run_for(below(20'000));
    if (!one->is_there() || !is_enough() || !copies_are_complete()) return;
    ++seen_.deaths;
    ++state_.deaths;
    if (store_of(one->node()).placement().moving > 0) ++seen_.deaths_amid_moves;
    const std::uint32_t way = below(8);
    tell("member " + std::to_string(one->node()) +
         (way == 0   ? " hangs"
          : way == 1 ? " sleeps until it is removed"
                     : " dies"));
    if (way == 0)
      world_.hang(one->node());
    else if (way == 1)
      world_.pause(one->node(), 3 * kSilenceNs);
    else
      world_.crash(one->node());
    one->forget();
  }
  /// Until slots move that all have both copies, if that comes soon.
  void await_moves() {
    for (int steps = 0; steps < 400; ++steps) {
      if (present().front()->member().store.placement().moving > 0 && copies_are_complete()) return;
      world_.run_for(5'000);
    }
  }
  void let_one_sleep() {
    TrialMember* const one = drawn(present());
    if (one == nullptr) return;
    ++seen_.pauses;
    const std::uint64_t ns = below(kSilenceNs / 4);
    tell("member " + std::to_string(one->node()) + " sleeps for " + std::to_string(ns) + " ns");
    world_.pause(one->node(), ns);
  }
  void let_one_be_slow() {
    TrialMember* const one = drawn(present());
    if (one == nullptr) return;
    const std::uint32_t factor = below(2) == 0 ? 1 : 1 + below(20);
    tell("member " + std::to_string(one->node()) + " is slow: " + std::to_string(factor));
    world_.slow(one->node(), factor);
  }

  // --- who is there ------------------------------------------------------------------------------

  [[nodiscard]] std::vector<TrialMember*> present() const {
    std::vector<TrialMember*> all;
    for (const auto& member : members_)
      if (member->is_there()) all.push_back(member.get());
    return all;
  }
  [[nodiscard]] std::size_t joining() const {
    return static_cast<std::size_t>(std::ranges::count_if(members_, [](const auto& one) {
      return !one->is_there() && !one->is_gone() && !one->has_left();
    }));
  }
  TrialMember* drawn(const std::vector<TrialMember*>& from) {
    return from.empty() ? nullptr : from[below(static_cast<std::uint32_t>(from.size()))];
  }
  /// That hold keys and go on with it, as far as anybody knows.
  [[nodiscard]] std::size_t holders_without(const TrialMember& one) const {
    std::size_t least = kMostMembers;
    for (const TrialMember* const by : present()) {
      std::size_t holders = 0;
      for (const auto& holder : by->member().store.placement().members)
        holders += holder.weight > 0 && holder.rank != one.rank() && stays(holder.rank) ? 1 : 0;
      least = std::min(least, holders);
    }
    return least;
  }
  [[nodiscard]] bool stays(Rank rank) const {
    const std::vector<TrialMember*> all = present();
    return std::ranges::any_of(
        all, [rank](const TrialMember* one) { return one->rank() == rank && !one->is_leaving(); });
  }
  [[nodiscard]] bool is_used_up() const {
    const std::vector<TrialMember*> all = present();
    return members_.size() >= kMostNodes || std::ranges::any_of(all, [](const TrialMember* one) {
             return one->rank() + 2 * kMostMembers > kMostRanks;
           });
  }
  /// At all members of one view, all of which are there, and know who is not.
  [[nodiscard]] bool copies_are_complete() const {
    const std::vector<TrialMember*> all = present();
    if (all.empty()) return false;
    for (const TrialMember* const one : all) {
      test::StoreMember& member = one->member();
      if (member.members.generation() != all.front()->member().members.generation() ||
          !member.store.statistics().copies_complete)
        return false;
      for (const auto& other : members_)
        if (other->has_member() && !other->is_there() && member.progress.contains(other->rank()))
          return false;
    }
    return true;
  }

  // --- the end -----------------------------------------------------------------------------------

  void end() {
    for (const TrialMember* const one : present()) world_.slow(one->node(), 1);
    EXPECT_TRUE(world_.run_until([&] { return joining() == 0; }, kPatienceNs)) << "a join hangs";
    state_.is_over = true;
    const auto all_are_idle = [&] {
      return std::ranges::all_of(present(), [](const TrialMember* one) { return one->idle(); });
    };
    EXPECT_TRUE(world_.run_until(all_are_idle, kPatienceNs)) << "STO-4, STO-5: a call hangs";
    if (testing::Test::HasFailure()) return;
    EXPECT_TRUE(world_.run_until([&] { return copies_are_complete(); }, kPatienceNs))
        << "STO-C4: copies are not made";
    if (testing::Test::HasFailure()) return;
    for (const TrialMember* const one : present()) await(one->member().store.settle(), "settle");
    expect_each_key_once();
    for (const TrialMember* const one : present()) read_all(one->node());
    if (testing::Test::HasFailure()) return;
    TrialMember* const one = drawn(present());
    tell("member " + std::to_string(one->node()) + " dies in the end");
    world_.crash(one->node());
    one->forget();
    for (const TrialMember* const by : present()) read_all(by->node());
  }

  /// STO-2, STO-C3: what the members say of their own parts.
  void expect_each_key_once() {
    std::map<std::string, std::string> all;
    for (const TrialMember* const one : present())
      one->member().store.for_each_local([&](const StoreEntry& entry) {
        const std::string key = test::Mortals::text_of(entry.key);
        EXPECT_TRUE(all.emplace(key, test::Mortals::text_of(entry.value)).second)
            << "STO-C3: " << key << " is at two members";
        EXPECT_EQ(one->member().store.home_of(key), one->rank()) << "STO-C3: " << key;
      });
    std::size_t known = TrialState::kStill + test::TrialBank::kAccounts;
    for (int key = 0; key < TrialState::kStill; ++key)
      EXPECT_TRUE(all.contains(test::name_of(key))) << "STO-M1: " << key << " is lost";
    for (test::TrialKey& key : state_.keys) {
      const auto found = all.find(key.name());
      key.see(key.least(), found == all.end() ? nullptr : &found->second);
      known += found == all.end() ? 0 : 1;
    }
    EXPECT_EQ(all.size(), known) << "STO-3: a key that nobody has put";
  }
  void read_all(Rank by) {
    SCOPED_TRACE("by member " + std::to_string(by));
    if (testing::Test::HasFailure()) return;
    for (int key = 0; key < TrialState::kStill; ++key)
      EXPECT_EQ(value_of(by, test::name_of(key)), "still " + test::name_of(key)) << "STO-C1";
    for (test::TrialKey& key : state_.keys) {
      const std::uint64_t least = key.least();
      const std::optional<std::string> value = value_of(by, key.name());
      key.see(least, value ? &*value : nullptr);
    }
    std::uint64_t sum = 0;
    for (std::size_t account = 0; account < test::TrialBank::kAccounts; ++account) {
      const auto seen =
          test::TrialBank::account_of(value_of(by, test::TrialBank::name_of(account)).value_or(""));
      test::TrialBank::saw(account, seen, state_.bank.ended());
      sum += seen.balance;
    }
    EXPECT_EQ(sum, test::TrialBank::kAccounts * test::TrialBank::kStart) << "STO-7";
  }
  std::optional<std::string> value_of(Rank by, const std::string& key) {
    auto get = store_of(by).get(key);
    await(get, "a last get");
    return get.found() ? std::optional<std::string>(get.text()) : std::nullopt;
  }

  void count_what(const TrialMember& one) {
    if (!one.has_member()) return;
    const auto counters = one.member().store.counters();
    seen_.keys_moved += counters.at("keys_moved");
    seen_.copies_restored += counters.at("copies_restored");
    seen_.repaired_locks += counters.at("repaired_locks");
  }
  void tell(const std::string& what) {
    events_.push_back(std::to_string(world_.now_ns()) + ": " + what);
    if (events_.size() > 40) events_.pop_front();
  }
  [[nodiscard]] std::string story() const {
    std::string text = "the last events:\n";
    for (const std::string& event : events_) text += "  " + event + "\n";
    text += "at " + std::to_string(world_.now_ns()) + ":\n";
    for (const auto& member : members_) text += member->under_way() + "\n";
    return text;
  }

  test::Draws draws_;
  std::uint32_t founders_;
  sim::World world_;
  TrialSeen& seen_;
  std::uint64_t ends_ns_;
  StoreOptions options_;
  TrialState state_{kKeysThatChange, seen_};
  std::vector<std::unique_ptr<TrialMember>> members_;  // by rank
  std::deque<std::string> events_;
};

/// For how long the trials go on in all.
std::uint64_t span_ns() {
  const char* const wanted = std::getenv("DUNLIN_TRIAL_SECONDS");
  if (wanted == nullptr) return test::rounds(24) * kSecondNs;
  std::uint64_t seconds = 0;
  if (!(std::istringstream(wanted) >> seconds) || seconds == 0)
    throw std::invalid_argument("DUNLIN_TRIAL_SECONDS is a number of seconds, and not '" +
                                std::string(wanted) + "'");
  return seconds * kSecondNs;
}

TEST(StoreTrialInSimulator, NoKeyIsLostOrDoubledWhileMembersComeAndGo) {
  const std::uint64_t span = span_ns();
  const bool are_chosen = std::getenv("DUNLIN_SEEDS") != nullptr;
  const test::Seeds chosen(1);
  std::uint64_t passed = 0, trials = 0;
  TrialSeen seen;
  const auto audit = [&](std::uint64_t seed) {
    SCOPED_TRACE("replay with DUNLIN_SEEDS='" + std::to_string(seed) + " " + std::to_string(seed) +
                 "'");
    passed += Trial(seed, seen, are_chosen ? UINT64_MAX : span - passed).run();
    ++trials;
  };
  for (std::uint64_t seed = chosen.first;
       (are_chosen ? seed <= chosen.last : passed < span) && !HasFailure(); ++seed)
    audit(seed);
  std::cout << trials << " trials, " << passed / kSecondNs << " s of virtual time: " << seen.text()
            << "\n";
}

}  // namespace
}  // namespace dunlin
