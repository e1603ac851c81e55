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
#include "store/trial_world.hpp"
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

using test::kMillisecondNs;
using test::kSecondNs;
using test::TrialMember;
using test::TrialSeen;

constexpr std::size_t kMostNodes = 40;    // over the life of a group
constexpr std::uint32_t kMostRanks = 64;  // joins that fail use ranks up, too
constexpr std::size_t kMostMembers = 8;
constexpr std::size_t kFewestMembers = 5;  // so that those that are left are a majority
constexpr std::size_t kFewestHolders = 3;
constexpr std::uint64_t kBusyNs = kMillisecondNs / 2;  // after each event
constexpr std::uint64_t kSilenceNs = 20 * kMillisecondNs;

class Trial : test::TrialWorld {
 public:
  Trial(std::uint64_t seed, TrialSeen& seen, std::uint64_t most_ns)
      : TrialWorld(seed, kind_of(seed), seen),
        ends_ns_(std::min<std::uint64_t>((2 + below(9)) * kSecondNs, most_ns)) {
    options_.memory_bytes = 4 << 20;
    options_.slots = 32U << below(3);
    options_.expected_keys = 8;
    options_.cache_bytes = below(3) == 0 ? 0 : 4096;
    if (below(2) == 0) options_.move_bytes_per_second = 4'000'000;
    found(world_.size());
  }

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
  static Kind kind_of(std::uint64_t seed) {
    test::Draws draws(seed);
    sim::Profile network = test::unfavourable_network(draws);
    network.heartbeat_interval_ns = 4 * kMillisecondNs;
    network.silence_timeout_ns = kSilenceNs;
    return {.network = network,
            .founders = static_cast<std::uint32_t>(kFewestMembers) + draws.below(2),
            .keys_that_change = 60,
            .keys_that_stay = 40,
            .most_ranks = kMostRanks};
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

  [[nodiscard]] std::size_t joining() const {
    return static_cast<std::size_t>(std::ranges::count_if(members_, [](const auto& one) {
      return !one->is_there() && !one->is_gone() && !one->has_left();
    }));
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

  // --- the end -----------------------------------------------------------------------------------

  void end() {
    for (const TrialMember* const one : present()) world_.slow(one->node(), 1);
    EXPECT_TRUE(world_.run_until([&] { return joining() == 0; }, kPatienceNs)) << "a join hangs";
    expect_all_in_the_end();
    if (testing::Test::HasFailure()) return;
    TrialMember* const one = drawn(present());
    tell("member " + std::to_string(one->node()) + " dies in the end");
    world_.crash(one->node());
    one->forget();
    for (const TrialMember* const by : present()) read_all(by->node());
  }

  void count_what(const TrialMember& one) {
    if (!one.has_member()) return;
    const auto counters = one.member().store.counters();
    seen_.keys_moved += counters.at("keys_moved");
    seen_.copies_restored += counters.at("copies_restored");
    seen_.repaired_locks += counters.at("repaired_locks");
  }

  std::uint64_t ends_ns_;
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
