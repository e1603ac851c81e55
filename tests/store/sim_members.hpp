#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"

/// Members that share a store, in the simulator: they may die, and others may join them.
namespace dunlin::test {

inline StoreOptions roomy_store(std::uint32_t homes = 0) {
  StoreOptions options = small_store();
  options.expected_keys = 8;
  options.slots = 64;
  options.homes = homes;
  return options;
}
inline StoreOptions tiny_store() {
  StoreOptions options = roomy_store();
  options.memory_bytes = kMinStoreBytes;
  return options;
}
inline StoreOptions two_copies(std::uint32_t homes = 0, std::uint64_t expected_keys = 8) {
  StoreOptions options = roomy_store(homes);
  options.expected_keys = expected_keys;
  options.copies = 2;
  return options;
}
inline std::string name_of(int key) { return "key " + std::to_string(key); }

struct StoreMember {
  explicit StoreMember(std::unique_ptr<Group> its_group, std::uint32_t most,
                       const StoreOptions& options = tiny_store())
      : group(std::move(its_group)), members(*group, most), store(progress, options) {}
  std::unique_ptr<Group> group;
  GroupMembers members;
  remote::Progress progress{group->fabric(), members};
  Store store;
};

/// The founders of a store, of whom the lower ranks are homes, and nodes that may come later.
class Mortals {
 public:
  explicit Mortals(std::uint32_t founders, std::uint32_t homes = 1,
                   const sim::Profile& profile = network(),
                   const StoreOptions& its_options = tiny_store(), std::uint32_t others = 0,
                   std::uint32_t most = 0)
      : world(profile, founders, 1), nodes(founders + others), options(its_options), most_(most) {
    options.homes = homes;
    for (std::uint32_t i = 0; i < others; ++i) world.add_node();
    for (Rank rank = 0; rank < nodes.size(); ++rank) {
      if (rank < founders)
        nodes[rank].member = std::make_unique<StoreMember>(
            others == 0 ? std::make_unique<Group>(world.fabric(rank))
                        : std::make_unique<Group>(world.fabric(rank), options_of(rank)),
            most_, options);
      world.attach(rank, [&node = nodes[rank]] { return node.poll(); });
    }
    world.run_for(1'000'000);
  }
  ~Mortals() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) world.detach_all(rank);
    while (!nodes.empty()) nodes.pop_back();
  }
  /// So slow that a write is under way for long.
  static sim::Profile network() {
    sim::Profile slow = sim::profile("ib100");
    slow.bandwidth_bytes_per_ns = 0.1;
    return slow;
  }
  /// Lines arrive in any order, too.
  static sim::Profile shuffling() {
    sim::Profile wild = network();
    wild.ordered_placement = false;
    wild.jitter = 0.9;
    return wild;
  }
  GroupOptions options_of(Rank rank) { return {.rendezvous = world.rendezvous(rank, "sim")}; }

  /// A node comes into the group, without a store.
  void enter(Rank rank) {
    Node& node = nodes[rank];
    world.on(rank, [&, rank] {
      node.entry = std::make_unique<GroupEntry>("late" + std::to_string(rank), options_of(rank));
    });
    EXPECT_TRUE(world.run_until([&] { return node.group != nullptr; }, kPatienceNs));
  }
  StoreMember& join(Rank rank) {
    enter(rank);
    Node& node = nodes[rank];
    world.on(rank, [&] {
      node.member = std::make_unique<StoreMember>(std::move(node.group), most_, options);
    });
    EXPECT_TRUE(world.run_until([&] { return node.member != nullptr; }, kPatienceNs));
    return *node.member;
  }
  StoreMember& member(Rank rank) { return *nodes.at(rank).member; }
  Store& at(Rank rank) { return member(rank).store; }
  std::uint64_t keys_at(Rank rank) { return at(rank).statistics().keys; }
  /// How many of the keys, as far as member `by` knows, that member holds first.
  std::uint64_t first_at(Rank home, Rank by) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        expected, [&](const auto& one) { return at(by).home_of(one.first) == home; }));
  }
  /// A key that this member holds first.
  std::string key_at(Rank home) {
    std::string key = "key";
    while (at(0).home_of(key) != home) key += "y";
    return key;
  }

  template <class Operation>
  remote::Status end_of(Operation&& operation) {
    EXPECT_TRUE(world.run_until([&] { return operation.finished(); }, kPatienceNs))
        << "STO-4, STO-5: hangs\n"
        << states();
    return operation.status();
  }
  std::string states() {
    std::string text;
    for (const Node& node : nodes)
      if (node.member) text += node.member->store.describe_moves() + "\n";
    return text;
  }
  /// The value; "-" if the key is absent.
  std::string get(Rank by, std::string_view key) {
    auto op = at(by).get(key);
    EXPECT_EQ(remote::describe(end_of(op)), "done") << key;
    return op.found() ? std::string(op.text()) : "-";
  }
  void put(Rank by, std::string_view key, std::string_view value) {
    EXPECT_EQ(remote::describe(end_of(at(by).put(key, value))), "done") << key;
  }
  /// The values of these keys at one moment.
  std::vector<std::string> get_at_once(Rank by, const std::vector<std::string>& keys) {
    StoreTransaction look(at(by));
    std::vector<std::string> values;
    remote::Status status = remote::Status::conflict;
    for (int tries = 0; tries < 10'000 && status == remote::Status::conflict; ++tries) {
      look.clear();
      values.clear();
      std::vector<StoreOperation*> gets;
      for (const std::string& key : keys) gets.push_back(&look.get(key));
      for (StoreOperation* const get : gets) {
        end_of(*get);
        values.push_back(get->found() ? std::string(get->text()) : "-");
      }
      status = end_of(look.commit());
      if (status == remote::Status::conflict) world.run_for(5'000);
    }
    EXPECT_EQ(remote::describe(status), "done") << "STO-8: hangs";
    return values;
  }
  void erase(Rank by, const std::string& key) {
    EXPECT_EQ(remote::describe(end_of(at(by).erase(key))), "done") << key;
    expected.erase(key);
  }
  void change(Rank by, int key, const std::string& text) {
    std::string value = std::string(static_cast<std::size_t>(key) * 20, 'v') + text;
    put(by, name_of(key), value);
    expected[name_of(key)] = std::move(value);
  }
  void fill(int many) {
    for (int key = 0; key < many; ++key) change(0, key, name_of(key));
  }
  /// Puts values of 4 KB by these members in turn, as far as there is room for them.
  void fill_up(int many, const std::vector<Rank>& by) {
    for (int key = 0; key < many; ++key) {
      const std::string value = std::string(4'000, 'v') + name_of(key);
      const Rank rank = by[static_cast<std::size_t>(key) % by.size()];
      const remote::Status status = end_of(at(rank).put(name_of(key), value));
      EXPECT_TRUE(status == remote::Status::ok || status == remote::Status::no_room ||
                  status == remote::Status::full)
          << remote::describe(status);
      if (status == remote::Status::ok) expected[name_of(key)] = value;
    }
  }
  std::uint64_t count(Rank by) {
    auto op = at(by).count();
    EXPECT_EQ(remote::describe(end_of(op)), "done");
    return op.keys();
  }
  /// What a scan by that member returns, one chain a step and so long between two steps; fails if
  /// it returns a key twice.
  std::map<std::string, std::string> scanned(Rank by, std::uint64_t pause_ns = 0) {
    std::map<std::string, std::string> all;
    StoreScan scan(at(by), {.buckets = 1});
    StoreCursor cursor = 0;
    do {
      scan.step(cursor);
      const bool is_done = end_of(scan) == remote::Status::ok;
      EXPECT_TRUE(is_done) << remote::describe(scan.status());
      if (!is_done) break;
      for (std::size_t i = 0; i < scan.size(); ++i)
        EXPECT_TRUE(all.emplace(text_of(scan[i].key), text_of(scan[i].value)).second)
            << "STO-C3, STO-M2: twice";
      cursor = scan.cursor();
      world.run_for(pause_ns);
    } while (cursor != 0);
    return all;
  }
  remote::Status settle(Rank by) { return end_of(at(by).settle()); }
  remote::Status leave(Rank by) { return end_of(at(by).leave()); }
  /// The lowest rank of the first `most` that has given keys away; `most` if none has.
  Rank giver(Rank most) {
    Rank gave = 0;
    while (gave < most && at(gave).counters().at("keys_moved") == 0) ++gave;
    return gave;
  }
  /// A transaction, again until nothing is in its way.
  void transfer(Rank by, int from, int to) {
    remote::Status status = remote::Status::conflict;
    for (int tries = 0; tries < 200 && status == remote::Status::conflict; ++tries) {
      StoreTransaction moves(at(by));
      const auto read = [&](int key) {
        StoreOperation& get = moves.get(name_of(key));
        end_of(get);
        return std::stoi(std::string(get.text()));
      };
      const int has = read(from), other = read(to);
      moves.put(name_of(from), std::to_string(has - 1));
      moves.put(name_of(to), std::to_string(other + 1));
      status = end_of(moves.commit());
    }
    EXPECT_EQ(remote::describe(status), "done") << "STO-M1";
  }
  /// Adds the numbers that the first keys have.
  int sum(Rank by, int many) {
    int all = 0;
    for (int key = 0; key < many; ++key) all += std::stoi(get(by, name_of(key)));
    return all;
  }

  void expect_gets(Rank by, const char* why = "STO-C1") {
    for (const auto& [key, value] : expected) EXPECT_EQ(get(by, key), value) << why << ": " << key;
    EXPECT_EQ(scanned(by), expected) << why;
  }
  void expect_all(Rank by) {
    expect_gets(by, "STO-M1");
    EXPECT_EQ(count(by), expected.size());
  }
  /// Each key of these members' own parts once, and nothing else (STO-C3).
  void expect_local_once(const std::vector<Rank>& members) {
    std::map<std::string, int> seen;
    for (const Rank rank : members)
      at(rank).for_each_local([&](const StoreEntry& entry) { ++seen[text_of(entry.key)]; });
    EXPECT_EQ(seen.size(), expected.size());
    for (const auto& [key, times] : seen) {
      EXPECT_EQ(times, 1) << "STO-C3: " << key;
      EXPECT_TRUE(expected.contains(key)) << "STO-C3: " << key;
    }
  }
  /// Each of them has second copies of its keys at one that is there.
  void expect_complete(const std::vector<Rank>& homes) {
    const auto is_complete = [&] {
      return std::ranges::all_of(homes,
                                 [&](Rank rank) { return at(rank).statistics().copies_complete; });
    };
    EXPECT_TRUE(world.run_until(is_complete, kPatienceNs)) << "STO-C4: copies are not made\n"
                                                           << states();
  }
  /// These members have heard of a death, and made the copies again.
  void expect_restored(Rank dead, const std::vector<Rank>& left) {
    for (const Rank rank : left) until_gone(dead, rank);
    expect_complete(left);
  }
  /// Until member `by` has agreed with the others on it.
  void until_gone(Rank rank, Rank by = 0) {
    EXPECT_TRUE(world.run_until([&] { return !member(by).progress.contains(rank); }, kPatienceNs))
        << states();
  }
  void part(Rank rank, Rank sees = 0) {
    member(rank).group->leave();
    until_gone(rank, sees);
  }

  struct Node {
    std::size_t poll() {
      if (member) return member->progress.poll();
      if (group) return group->poll();
      if (!entry) return 0;
      group = entry->poll();
      if (group) entry.reset();
      return group ? 1 : 0;
    }
    std::unique_ptr<GroupEntry> entry;
    std::unique_ptr<Group> group;
    std::unique_ptr<StoreMember> member;
  };
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static constexpr std::uint64_t kPatienceNs = 10'000'000'000;

  sim::World world;
  std::vector<Node> nodes;
  StoreOptions options;  // of those that join
  std::map<std::string, std::string> expected;

 private:
  std::uint32_t most_;
};

/// Homes of the lower ranks, and clients.
struct CopiedMortals : Mortals {
  explicit CopiedMortals(std::uint32_t members = 6, std::uint32_t homes = 5,
                         const StoreOptions& its_options = two_copies())
      : Mortals(members, homes, network(), its_options) {}
};

inline constexpr std::uint32_t kFounders = 3;
inline constexpr Rank kLate = kFounders;
inline constexpr std::uint32_t kMost = 6;

/// Three founders, and nodes that may come as clients.
struct Growing : Mortals {
  explicit Growing(std::uint32_t others = 1, const sim::Profile& profile = sim::profile("ib100"),
                   const StoreOptions& its_options = tiny_store())
      : Mortals(kFounders, its_options.homes, profile, its_options, others, kMost) {}
};

/// Three founders, and members that join them later and contribute memory.
struct Joining : Growing {
  explicit Joining(const StoreOptions& its_options = roomy_store(), std::uint32_t others = 2)
      : Growing(others, network(), its_options) {
    options.contributes = true;
  }
};

}  // namespace dunlin::test
