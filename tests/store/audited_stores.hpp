#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/key_history.hpp"
#include "store/seen.hpp"
#include "support/histories.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Members of a random history whose calls on a few keys are kept and judged: in chains that
/// overflow, while some crash, hang, pause, or are cut off, and some calls are abandoned. In some
/// histories a further member joins the group. It is a client of the others, and takes keys now and
/// then. Homes leave, too. With two copies of each key, no call may say that its key is lost before
/// two homes have died, the second one before the copies of the first one's keys were made again.
namespace dunlin::test {

using remote::Status;

inline constexpr std::uint32_t kFewKeys = 14;
inline constexpr std::uint32_t kKeys = 40;  // at most: indexes grow
inline constexpr std::uint64_t kSeedsPerGrowth = 3;
inline constexpr std::uint64_t kSeedsPerCopies = 5;
inline constexpr std::uint64_t kSeedsPerLeave = 5;
inline constexpr std::uint32_t kCallsAtOnce = 2;  // of each member
inline constexpr std::uint64_t kSeedsPerJoin = 4;

struct StoreAuditor;

/// What befalls the members.
enum class Schedule : std::uint8_t {
  any,
  evicts,  // likewise, in a store that evicts
  moves    // with two copies: homes leave or a member takes keys, and one dies meanwhile
};

/// A call that a member has under way, again and again.
struct AuditedCall {
  std::unique_ptr<StoreOperation> operation;
  bool under_way = false;
  KeyCall call = KeyCall::get;
  std::uint32_t key = 0;
  std::size_t record = 0;
  std::vector<std::byte> value;
};

class AuditedStore {
 public:
  /// A founder, unless it joins.
  AuditedStore(StoreAuditor& its_auditor, Rank its_rank, std::uint64_t seed, bool joins);
  std::size_t poll() {
    if (progress) return progress->poll() + step();
    if (!entry_) return 0;
    auto group_it_is_in = entry_->poll();
    if (!group_it_is_in) return 0;
    settle(std::move(group_it_is_in));
    return 1;
  }
  void stop() { stopping_ = true; }
  void settle() {
    if (stopping_ || !store) return;
    take_ = std::make_unique<StoreOperation>();
    store->settle(*take_);
  }
  void leave(bool also_the_group) {  // once its keys have moved
    if (stopping_) return;
    leave_ = std::make_unique<StoreOperation>();
    leaves_group_ = also_the_group;
    has_begun_to_leave_ = true;
    store->leave(*leave_);
  }
  [[nodiscard]] bool idle() const {
    for (const AuditedCall& call : calls_)
      if (call.operation && !call.operation->finished()) return false;
    return (!leave_ || leave_->finished()) && (!take_ || take_->finished());
  }
  /// What hangs.
  [[nodiscard]] std::string under_way() const {
    std::string text;
    for (const AuditedCall& call : calls_)
      if (call.operation && !call.operation->finished())
        text += ", " + std::to_string(static_cast<int>(call.call)) + " of key " +
                std::to_string(call.key) + " at " +
                std::to_string(store->home_of(key_of(call.key)));
    if (leave_ && !leave_->finished()) text += ", leave";
    if (take_ && !take_->finished()) text += ", settle";
    return store ? text + "\n" + store->describe_moves() + "\n" : text;
  }
  /// Whether a change has read the former entry, which it does under the lock.
  [[nodiscard]] bool writes() const {
    for (const AuditedCall& call : calls_)
      if (call.under_way && call.call != KeyCall::get && !call.operation->finished() &&
          call.operation->entry_reads() > 0)
        return true;
    return false;
  }
  /// On purpose, once its keys had moved.
  [[nodiscard]] bool has_left() const { return has_left_; }
  [[nodiscard]] bool has_begun_to_leave() const { return has_begun_to_leave_; }
  [[nodiscard]] bool is_member() const { return members && members->why_stopped().empty(); }
  void close() {
    leave_.reset();
    take_.reset();
    for (AuditedCall& call : calls_) call.operation.reset();
    store.reset();
  }

  StoreAuditor& auditor;
  Rank rank;
  std::unique_ptr<Group> group;
  std::unique_ptr<GroupMembers> members;
  std::unique_ptr<remote::Progress> progress;
  std::unique_ptr<Store> store;

 private:
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void settle(std::unique_ptr<Group> its_group);
  std::size_t step();
  void begin(AuditedCall& call);
  void end(AuditedCall& call);

  test::Draws draws_;
  std::unique_ptr<GroupEntry> entry_;
  bool stopping_ = false;
  std::unique_ptr<StoreOperation> leave_, take_;
  bool leaves_group_ = false, has_left_ = false, has_begun_to_leave_ = false;
  std::array<AuditedCall, kCallsAtOnce> calls_;
  std::uint64_t next_at_ns_ = 0;
};

struct StoreAuditor {
  StoreAuditor(std::uint64_t its_seed, StoreSeen& what, Schedule its_schedule = Schedule::any)
      : seed(its_seed),
        seen(what),
        schedule(its_schedule),
        draws(its_seed),
        key_count(seed % kSeedsPerGrowth == 1 ? kKeys : kFewKeys),
        founders(schedule == Schedule::moves ? 3 + below(3) : 2 + below(4)),
        count(founders + (seed % (schedule == Schedule::moves ? 2 : kSeedsPerJoin) == 0 ? 1 : 0)),
        world(test::unfavourable_network(draws), founders, its_seed),
        gone(count),
        is_replaced(count) {
    if (count > founders) world.add_node();
    // Copies can be made again only if there is room for them.
    options.memory_bytes = schedule == Schedule::moves ? 4 * kMinStoreBytes : kMinStoreBytes;
    options.large_bytes = 0;
    options.slots = 16U << below(3);
    options.expected_keys = key_count == kKeys ? 1 : 1 + below(16);
    options.cache_bytes = below(3) == 0 ? 0 : 256;
    options.homes = below(2) == 0 ? 1 : founders;
    if (schedule == Schedule::moves || (schedule == Schedule::any && seed % kSeedsPerCopies == 2)) {
      options.homes = founders;
      options.copies = 2;
      leaves = below(founders);
    } else if (schedule == Schedule::any && seed % kSeedsPerLeave == 3) {
      options.homes = founders;
      leaves = 1 + below(founders - 1);
    }
    takes = count > founders && schedule != Schedule::evicts;
    if (schedule == Schedule::evicts) {
      options.eviction = Eviction::lru;
      options.limit_bytes = (2 + below(3)) << 16;  // slabs
    }
    for (Rank rank = 0; rank < count; ++rank) {
      stores.push_back(
          std::make_unique<AuditedStore>(*this, rank, seed * 89 + rank, rank >= founders));
      AuditedStore& member = *stores.back();
      world.attach(rank, [&member] { return member.poll(); });
    }
    EXPECT_TRUE(world.run_until([&] { return stores.back()->is_member(); }, 1'000'000'000))
        << "nobody lets the joiner in";
    begun = true;
  }

  void run() {
    if (schedule == Schedule::moves) {
      world.run_for(1 + below(300'000));
      let_one_leave();
      let_the_joiner_take();
      if (below(8) > 0) let_one_die();
    } else {
      let_troubles_come();
    }
    world.run_for(300'000);
    while (leaves > 0) let_one_leave();
    let_the_joiner_take();
    test::heal_all(world, count);
    for (const auto& member : stores) member->stop();
    const bool all_ended = world.run_until([&] { return all_idle(); }, 3'000'000'000);
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || gone[rank] || stores[rank]->idle())
          << "STO-4, STO-5: a call of member " << rank << " hangs" << stores[rank]->under_way();
    look_at_what_is_left();
    get_what_is_left();
    if (schedule == Schedule::moves && !testing::Test::HasFailure()) let_one_more_die();
    for (std::uint32_t key = 0; key < key_count; ++key)
      EXPECT_TRUE(keys.at(key).linearizable(options.eviction != Eviction::none))
          << "STO-1, STO-V1: key " << key << "\n"
          << keys.at(key).text();
    for (const auto& member : stores) {
      seen.add(*member->store);
      EXPECT_TRUE(options.limit_bytes == 0 ||
                  member->store->statistics().memory_bytes <= options.limit_bytes)
          << "STO-V3";
    }
    for (Rank rank = 0; rank < count; ++rank) world.detach_all(rank);
    for (const auto& member : stores) member->close();
  }

  void let_troubles_come() {
    for (std::uint32_t troubles = below(4); troubles > 0; --troubles) {
      world.run_for(1 + below(300'000));
      let_one_leave();
      let_the_joiner_take();
      is_troubled = true;
      test::trouble(world, draws, gone, [this](Rank rank) { await_a_write_of(rank); });
    }
  }
  /// The first death. It loses nothing.
  void let_one_die() {
    Rank dies = below(count);
    if (stores[dies]->has_left()) return;
    await_a_write_of(dies);
    if (stores[dies]->has_left()) return;
    is_troubled = true;
    gone[dies] = true;
    ++seen.deaths_amid_moves;
    world.crash(dies);
  }
  /// Once all copies are complete, a further home: that loses nothing either. Those that are left
  /// are more than half of the members before.
  void let_one_more_die() {
    std::vector<Rank> left;
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && stores[rank]->is_member() && !stores[rank]->has_left())
        left.push_back(rank);
    if (left.size() < 3) return;
    EXPECT_TRUE(world.run_until([&] { return copies_are_complete(); }, 3'000'000'000))
        << "STO-C4: copies are not made\n"
        << states();
    const Rank dies = left[below(static_cast<std::uint32_t>(left.size()))];
    // One that has begun to leave takes nothing over.
    if (std::ranges::none_of(left, [&](Rank rank) {
          return rank != dies && rank < founders && !stores[rank]->has_begun_to_leave();
        }))
      return;
    gone[dies] = true;
    world.crash(dies);
    get_what_is_left();
  }

  /// STO-2, and what the last gets would return.
  void look_at_what_is_left() {
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank] || !stores[rank]->is_member() || is_behind(rank)) continue;
      std::map<std::uint64_t, std::uint64_t> left;
      stores[rank]->store->for_each_local([&](const StoreEntry& entry) {
        std::uint64_t key = 0;
        ASSERT_EQ(entry.key.size(), sizeof key);
        std::memcpy(&key, entry.key.data(), sizeof key);
        EXPECT_TRUE(left.emplace(key, number_of(entry.value)).second) << "STO-2: twice";
      });
      for (std::uint32_t key = 0; key < key_count; ++key) {
        // A key of which both homes have died is lost.
        if (stores[rank]->store->home_of(key_of(key)) != rank || may_have_lost_keys(rank) ||
            keys.at(key).records().size() >= KeyCalls::kMost + 4)
          continue;
        const auto found = left.find(key_of(key));
        if (found == left.end() && may_lack_keys(rank)) continue;
        // While its slot opens, the former owner has it.
        if (found == left.end() && !stores[rank]->store->placement().is_settled()) continue;
        const std::uint64_t begin = ++events;
        keys.at(key).add({.saw = found == left.end() ? 0 : found->second,
                          .found = found != left.end(),
                          .begin = begin,
                          .end = ++events});
      }
    }
  }

  /// What a member saw in its own part is what all get from then on.
  void get_what_is_left() {
    Rank by = 0;
    while (by < count && (gone[by] || !stores[by]->is_member() || is_behind(by))) ++by;
    if (by == count) return;
    for (std::uint32_t key = 0; key < key_count; ++key) {
      if (keys.at(key).records().size() >= KeyCalls::kMost + 4) continue;
      StoreOperation get;
      const std::uint64_t begin = ++events;
      stores[by]->store->get(get, key_of(key));
      EXPECT_TRUE(world.run_until([&] { return get.finished(); }, 1'000'000'000))
          << "STO-5: the last get hangs\n"
          << states();
      EXPECT_TRUE(get.status() == Status::ok || get.status() == Status::stopped ||
                  schedule != Schedule::moves)
          << "STO-C1, STO-C4: key " << key << ": " << remote::describe(get.status());
      if (get.status() != Status::ok) continue;
      keys.at(key).add({.saw = get.found() ? number_of(get.value()) : 0,
                        .found = get.found(),
                        .begin = begin,
                        .end = ++events});
      ++seen.last_gets;
    }
  }

  void let_one_leave() {
    if (leaves == 0) return;
    --leaves;
    const Rank rank = below(founders);
    const bool also_the_group = below(2) == 0;
    if (!gone[rank])
      world.on(rank, [this, rank, also_the_group] { stores[rank]->leave(also_the_group); });
    world.run_for(below(200'000));
  }

  /// And later it may leave again.
  void let_the_joiner_take() {
    if (!takes || gone[founders]) return;
    const bool leaves_again = below(4) == 0;
    world.on(founders, [this, leaves_again] {
      if (leaves_again)
        stores[founders]->leave(below(2) == 0);
      else
        stores[founders]->settle();
    });
    world.run_for(below(200'000));
  }

  std::string states() const {
    std::string text;
    for (const auto& one : stores)
      if (one->store) text += one->store->describe_moves() + "\n";
    return text;
  }
  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !stores[rank]->idle()) return false;
    return true;
  }

  /// Whether the keys of one that is gone are at others then.
  bool has_successors() const { return options.copies > 1 || options.eviction != Eviction::none; }
  /// Others are members without this one, and it does not know that yet.
  bool is_behind(Rank rank) const {
    if (!has_successors()) return false;
    for (const auto& other : stores)
      if (!gone[other->rank] && other->is_member() &&
          other->members->generation() > stores[rank]->members->generation())
        return true;
    return false;
  }

  /// The others have removed it, and it does not know that yet. What it reads meanwhile may be old
  /// (STO-C2).
  bool is_removed(Rank rank) const {
    if (!has_successors()) return false;
    for (const auto& other : stores)
      if (other->is_member() && !other->members->contains(rank) &&
          other->members->generation() > stores[rank]->members->generation())
        return true;
    return false;
  }

  /// With copies: two homes have died, the second one perhaps before the copies of the first one's
  /// keys were made again. So keys of both are lost for good (STO-C4).
  bool may_have_lost_keys(Rank rank) {
    if (options.copies == 1) return false;
    has_lost_keys = has_lost_keys || deaths_known_to(rank) > 1;
    return has_lost_keys;
  }
  /// Of members with memory for keys, whose copies have not been made again. Those that have left
  /// on purpose had none.
  std::uint32_t deaths_known_to(Rank rank) const {
    std::uint32_t deaths = 0;
    for (Rank home = 0; home < count; ++home)
      deaths +=
          !stores[rank]->members->contains(home) && !stores[home]->has_left() && !is_replaced[home]
              ? 1
              : 0;
    return deaths;
  }
  /// With copies: now and then. Who has died before its keys' copies are complete is replaced then.
  void look_for_deaths() {
    if (options.copies == 1 || !begun || ++looks % 16 != 0) return;
    for (const auto& one : stores)
      if (one->is_member() && may_have_lost_keys(one->rank)) return;
    if (!copies_are_complete()) return;
    for (const auto& one : stores)
      if (!gone[one->rank] && one->is_member())
        for (Rank home = 0; home < count; ++home)
          is_replaced[home] = is_replaced[home] || !one->members->contains(home);
  }
  /// At all members of one view, all of which are there.
  bool copies_are_complete() const {
    const AuditedStore* latest = nullptr;
    for (const auto& one : stores)
      if (one->is_member() && !one->has_left() &&
          (latest == nullptr || latest->members->generation() < one->members->generation()))
        latest = one.get();
    if (latest == nullptr) return false;
    for (const auto& one : stores) {
      if (!latest->members->contains(one->rank)) continue;
      if (gone[one->rank] || !one->is_member() ||
          one->members->generation() != latest->members->generation() ||
          !one->store->statistics().copies_complete)
        return false;
      for (Rank other = 0; other < count; ++other)
        if (!latest->members->contains(other) && one->progress->contains(other)) return false;
    }
    return true;
  }

  /// With one copy: a home has gone, and the next one may have got none of its keys.
  bool may_lack_keys(Rank rank) const {
    bool is_one_gone = false;
    for (Rank home = 0; home < count; ++home)
      is_one_gone = is_one_gone || !stores[rank]->members->contains(home);
    return options.copies == 1 && is_one_gone;
  }

  /// That member dies in the middle of its writes, now and then.
  void await_a_write_of(Rank rank) {
    if (below(2) == 0) world.run_until([&] { return stores[rank]->writes(); }, 50'000);
    world.run_for(below(20'000));
  }

  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }
  /// What the independent checker understands of it: gets, and changes of whatever was there.
  void tell(Histories& histories) const {
    for (std::uint32_t key = 0; key < key_count; ++key) {
      histories.begin("seed-" + std::to_string(seed) + "-key-" + std::to_string(key),
                      Histories::Model::map);
      std::uint32_t client = 0;
      for (const KeyCallRecord& record : keys.at(key).records()) {
        const std::string name = "k";
        const std::uint64_t end =
            record.end == KeyCallRecord::kNoEnd ? Histories::kNever : record.end;
        const std::string saw =
            record.found ? std::to_string(record.saw) : std::string(Histories::kAbsent);
        const bool reads =
            record.call == KeyCall::get || (record.call == KeyCall::insert && record.found);
        if (reads) {
          if (end != Histories::kNever) histories.get(client, name, saw, record.begin, end);
        } else if (record.call == KeyCall::erase) {
          histories.erase(client, name, record.begin, end);
        } else {
          histories.put(client, name, std::to_string(record.writes), record.begin, end);
        }
        ++client;
      }
    }
  }

  std::uint64_t seed;
  StoreSeen& seen;
  Schedule schedule;
  test::Draws draws;
  std::uint32_t key_count;
  std::uint32_t founders;
  std::uint32_t count;                      // with the one that joins
  bool begun = false, is_troubled = false;  // all are there; one has been hit
  std::uint32_t leaves = 0;                 // that are still to come
  bool takes = false;                       // the one that joins takes keys
  sim::World world;
  StoreOptions options;
  std::vector<bool> gone;         // crashed or hung
  std::vector<bool> is_replaced;  // and its keys have two copies again
  bool has_lost_keys = false;
  std::uint64_t looks = 0;
  std::uint64_t events = 0, values = 0;
  std::array<KeyCalls, kKeys> keys;
  std::array<std::map<std::uint64_t, std::uint64_t>, kKeys> versions;  // and their values
  std::vector<std::unique_ptr<AuditedStore>> stores;
};

}  // namespace dunlin::test
