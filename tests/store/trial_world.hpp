#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/trial_members.hpp"
#include "support/troubles.hpp"

/// The world of a trial: its members, and what must hold in the end.
namespace dunlin::test {

inline constexpr std::uint64_t kMillisecondNs = 1'000'000;
inline constexpr std::uint64_t kSecondNs = 1'000 * kMillisecondNs;

class TrialWorld {
 public:
  TrialWorld(const TrialWorld&) = delete;
  TrialWorld& operator=(const TrialWorld&) = delete;

 protected:
  static constexpr std::uint64_t kPatienceNs = 20 * kSecondNs;

  struct Kind {
    sim::Profile network;
    std::uint32_t founders;
    std::size_t keys_that_change;
    int keys_that_stay;
    std::uint32_t most_ranks;
  };
  TrialWorld(std::uint64_t seed, const Kind& kind, TrialSeen& seen)
      : draws_(seed * 31),
        world_(kind.network, kind.founders, seed),
        seen_(seen),
        state_(kind.keys_that_change, kind.keys_that_stay, seen),
        most_ranks_(kind.most_ranks) {
    options_.large_bytes = 0;
    options_.copies = 2;
  }
  ~TrialWorld() {
    world_.end();
    for (Rank node = 0; node < members_.size(); ++node) world_.detach_all(node);
    while (!members_.empty()) members_.back()->close(), members_.pop_back();
  }

  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void found(std::uint32_t founders) {
    for (Rank node = 0; node < founders; ++node)
      add(node).begin(std::make_unique<StoreMember>(
          std::make_unique<Group>(world_.fabric(node),
                                  GroupOptions{.rendezvous = world_.rendezvous(node, "sim")}),
          most_ranks_, options_));
  }
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
    for (int key = 0; key < state_.still; ++key)
      await(store_of(0).put(name_of(key), "still " + name_of(key)), "the first put");
    for (std::size_t account = 0; account < TrialBank::kAccounts; ++account)
      await(store_of(0).put(TrialBank::name_of(account),
                            TrialBank::text_of({.balance = TrialBank::kStart}, 0)),
            "an account");
  }

  // --- who is there ------------------------------------------------------------------------------

  [[nodiscard]] std::vector<TrialMember*> present() const {
    std::vector<TrialMember*> all;
    for (const auto& member : members_)
      if (member->is_there()) all.push_back(member.get());
    return all;
  }
  TrialMember* drawn(const std::vector<TrialMember*>& from) {
    return from.empty() ? nullptr : from[below(static_cast<std::uint32_t>(from.size()))];
  }
  /// At all members of one view, all of which are there, and know who is not.
  [[nodiscard]] bool copies_are_complete() const {
    const std::vector<TrialMember*> all = present();
    if (all.empty()) return false;
    for (const TrialMember* const one : all) {
      StoreMember& member = one->member();
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

  /// All calls end, nothing moves any more, and each key is where it should be.
  void expect_all_in_the_end() {
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
    if (!testing::Test::HasFailure()) expect_each_key_once();
    for (const TrialMember* const one : present()) read_all(one->node());
    for (TrialKey& key : state_.keys) key.close();
  }
  /// STO-2, STO-C3: what the members say of their own parts.
  void expect_each_key_once() {
    std::map<std::string, std::string> all;
    for (const TrialMember* const one : present())
      one->member().store.for_each_local([&](const StoreEntry& entry) {
        const std::string key = Mortals::text_of(entry.key);
        EXPECT_TRUE(all.emplace(key, Mortals::text_of(entry.value)).second)
            << "STO-C3: " << key << " is at two members";
        EXPECT_EQ(one->member().store.home_of(key), one->rank()) << "STO-C3: " << key;
      });
    std::size_t known = static_cast<std::size_t>(state_.still) + TrialBank::kAccounts;
    for (int key = 0; key < state_.still; ++key)
      EXPECT_TRUE(all.contains(name_of(key))) << "STO-M1: " << key << " is lost";
    for (TrialKey& key : state_.keys) {
      const auto found = all.find(key.name());
      key.see(key.least(), found == all.end() ? nullptr : &found->second);
      known += found == all.end() ? 0 : 1;
    }
    known += all.contains(TrialCounter::kName) ? 1 : 0;
    EXPECT_EQ(all.size(), known) << "STO-3: a key that nobody has put";
  }
  void read_all(Rank by) {
    SCOPED_TRACE("by member " + std::to_string(by));
    if (testing::Test::HasFailure()) return;
    for (int key = 0; key < state_.still; ++key)
      EXPECT_EQ(value_of(by, name_of(key)), "still " + name_of(key)) << "STO-C1";
    for (TrialKey& key : state_.keys) {
      const std::uint64_t least = key.least();
      const std::optional<std::string> value = value_of(by, key.name());
      key.see(least, value ? &*value : nullptr);
    }
    std::uint64_t sum = 0;
    for (std::size_t account = 0; account < TrialBank::kAccounts; ++account) {
      const auto seen =
          TrialBank::account_of(value_of(by, TrialBank::name_of(account)).value_or(""));
      TrialBank::saw(account, seen, state_.bank.ended());
      sum += seen.balance;
    }
    state_.counter.expect(std::stoull(value_of(by, TrialCounter::kName).value_or("0")));
    EXPECT_EQ(sum, TrialBank::kAccounts * TrialBank::kStart) << "STO-7";
  }
  std::optional<std::string> value_of(Rank by, const std::string& key) {
    auto get = store_of(by).get(key);
    await(get, "a last get");
    return get.found() ? std::optional<std::string>(get.text()) : std::nullopt;
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

  Draws draws_;
  sim::World world_;
  TrialSeen& seen_;
  TrialState state_;
  std::uint32_t most_ranks_;
  StoreOptions options_;
  std::vector<std::unique_ptr<TrialMember>> members_;  // by node
  std::deque<std::string> events_;
};

}  // namespace dunlin::test
