#include "support/seeds.hpp"

#include <array>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/store.hpp>

#include "store/key_history.hpp"
#include "store/seen.hpp"
#include "support/histories.hpp"
#include "support/rounds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator: members get and change a few keys, in chains that overflow,
/// while some crash, hang, pause, or are cut off, and some calls are abandoned. In some of them a
/// further member has joined the group, and is a client of the others.
namespace dunlin {
namespace {

using remote::Status;
using test::Histories;
using test::key_of;
using test::KeyCall;
using test::KeyCallRecord;
using test::KeyCalls;
using test::number_of;
using test::StoreSeen;
using test::value_of;

constexpr std::uint64_t kStoreSeeds = test::rounds(1'000);
constexpr std::uint64_t kEvictionSeeds = test::rounds(400);
/// Of the seeds, those whose histories the independent checker sees, too.
constexpr std::uint64_t kSeedsForChecker = 200;
constexpr std::uint32_t kFewKeys = 14;
constexpr std::uint32_t kKeys = 40;  // at most: indexes grow
constexpr std::uint64_t kSeedsPerGrowth = 3;
constexpr std::uint64_t kSeedsPerCopies = 5;
constexpr std::uint64_t kSeedsPerLeave = 5;
constexpr std::uint32_t kCallsAtOnce = 2;  // of each member
constexpr std::uint64_t kSeedsPerJoin = 4;

struct StoreAuditor;

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
  void leave(bool also_the_group) {  // once its keys have moved
    if (stopping_) return;
    leave_ = std::make_unique<StoreOperation>(*store);
    leaves_group_ = also_the_group;
    store->leave(*leave_);
  }
  [[nodiscard]] bool idle() const {
    for (const AuditedCall& call : calls_)
      if (call.operation && !call.operation->finished()) return false;
    return !leave_ || leave_->finished();
  }
  /// Whether a change has read the former entry, which it does under the lock.
  [[nodiscard]] bool writes() const {
    for (const AuditedCall& call : calls_)
      if (call.under_way && call.call != KeyCall::get && !call.operation->finished() &&
          call.operation->entry_reads() > 0)
        return true;
    return false;
  }
  [[nodiscard]] bool is_member() const { return members && members->why_stopped().empty(); }
  void close() {
    leave_.reset();
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
  std::unique_ptr<StoreOperation> leave_;
  bool leaves_group_ = false;
  std::array<AuditedCall, kCallsAtOnce> calls_;
  std::uint64_t next_at_ns_ = 0;
};

struct StoreAuditor {
  StoreAuditor(std::uint64_t its_seed, StoreSeen& what, Eviction eviction = Eviction::none)
      : seed(its_seed),
        seen(what),
        draws(its_seed),
        key_count(seed % kSeedsPerGrowth == 1 ? kKeys : kFewKeys),
        founders(2 + below(4)),
        count(founders + (seed % kSeedsPerJoin == 0 ? 1 : 0)),
        world(test::unfavourable_network(draws), founders, its_seed),
        gone(count) {
    if (count > founders) world.add_node();
    options.memory_bytes = kMinStoreBytes;
    options.large_bytes = 0;
    options.expected_keys = key_count == kKeys ? 1 : 1 + below(16);
    options.cache_bytes = below(3) == 0 ? 0 : 256;
    options.homes = below(2) == 0 ? 1 : founders;
    if (eviction == Eviction::none && seed % kSeedsPerCopies == 2) {
      options.homes = founders;
      options.copies = 2;
    }
    if (eviction == Eviction::none && seed % kSeedsPerLeave == 3) {
      options.homes = founders;
      leaves = 1 + below(founders - 1);
    }
    options.eviction = eviction;
    if (eviction != Eviction::none) options.limit_bytes = (2 + below(3)) << 16;  // slabs
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
    for (std::uint32_t troubles = below(4); troubles > 0; --troubles) {
      world.run_for(1 + below(300'000));
      let_one_leave();
      is_troubled = true;
      test::trouble(world, draws, gone, [this](Rank rank) { await_a_write_of(rank); });
    }
    world.run_for(300'000);
    while (leaves > 0) let_one_leave();
    test::heal_all(world, count);
    for (const auto& member : stores) member->stop();
    const bool all_ended = world.run_until([&] { return all_idle(); }, 3'000'000'000);
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || gone[rank] || stores[rank]->idle())
          << "STO-4, STO-5: a call of member " << rank << " hangs";
    look_at_what_is_left();
    get_what_is_left();
    for (std::uint32_t key = 0; key < key_count; ++key)
      EXPECT_TRUE(keys.at(key).linearizable(options.eviction != Eviction::none))
          << "STO-1, STO-V1: key " << key << "\n"
          << keys.at(key).text();
    for (const auto& member : stores) {
      const StoreStatistics statistics = member->store->statistics();
      seen.add(statistics);
      EXPECT_TRUE(options.limit_bytes == 0 || statistics.memory_bytes <= options.limit_bytes)
          << "STO-V3";
    }
    for (Rank rank = 0; rank < count; ++rank) world.detach_all(rank);
    for (const auto& member : stores) member->close();
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
      StoreOperation get(*stores[by]->store);
      const std::uint64_t begin = ++events;
      stores[by]->store->get(get, key_of(key));
      EXPECT_TRUE(world.run_until([&] { return get.finished(); }, 1'000'000'000))
          << "STO-5: the last get hangs";
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

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !stores[rank]->idle()) return false;
    return true;
  }

  /// With copies: others are members without this one, and it does not know that yet.
  bool is_behind(Rank rank) const {
    if (options.copies == 1) return false;
    for (const auto& other : stores)
      if (!gone[other->rank] && other->is_member() &&
          other->members->generation() > stores[rank]->members->generation())
        return true;
    return false;
  }

  /// With copies: that member knows of a second home that has gone, perhaps before the copies were
  /// restored.
  bool may_have_lost_keys(Rank rank) const {
    std::uint32_t homes = 0;
    for (Rank home = 0; home < founders; ++home)
      homes += stores[rank]->members->contains(home) ? 1 : 0;
    return options.copies > 1 && homes + 1 < founders;
  }

  /// With one copy: a home has gone, and the next one may have got none of its keys.
  bool may_lack_keys(Rank rank) const {
    bool is_one_gone = false;
    for (Rank home = 0; home < founders; ++home)
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
  test::Draws draws;
  std::uint32_t key_count;
  std::uint32_t founders;
  std::uint32_t count;                      // with the one that joins
  bool begun = false, is_troubled = false;  // all are there; one has been hit
  std::uint32_t leaves = 0;                 // that are still to come
  sim::World world;
  StoreOptions options;
  std::vector<bool> gone;  // crashed or hung
  std::uint64_t events = 0, values = 0;
  std::array<KeyCalls, kKeys> keys;
  std::array<std::map<std::uint64_t, std::uint64_t>, kKeys> versions;  // and their values
  std::vector<std::unique_ptr<AuditedStore>> stores;
};

AuditedStore::AuditedStore(StoreAuditor& its_auditor, Rank its_rank, std::uint64_t seed, bool joins)
    : auditor(its_auditor), rank(its_rank), draws_(seed) {
  GroupOptions of_group;
  if (auditor.count > auditor.founders) of_group.rendezvous = auditor.world.rendezvous(rank, "sim");
  if (joins) {
    auditor.world.on(rank,
                     [this, of_group] { entry_ = std::make_unique<GroupEntry>("late", of_group); });
  } else {
    settle(std::make_unique<Group>(auditor.world.fabric(rank), of_group));
  }
}

void AuditedStore::settle(std::unique_ptr<Group> its_group) {
  group = std::move(its_group);
  members = std::make_unique<GroupMembers>(*group, auditor.count);
  progress = std::make_unique<remote::Progress>(group->fabric(), *members);
  store = std::make_unique<Store>(*progress, auditor.options);
  for (AuditedCall& call : calls_) call.operation = std::make_unique<StoreOperation>(*store);
}

std::size_t AuditedStore::step() {
  std::size_t done = 0;
  for (AuditedCall& call : calls_) {
    if (!stopping_ && call.under_way && !call.operation->finished() && below(300) == 0)
      call.operation->abandon();
    if (call.under_way && call.operation->finished()) end(call), ++done;
  }
  if (leave_ && leave_->finished()) {
    if (leave_->status() == Status::ok) ++auditor.seen.leaves;
    const bool parts = leaves_group_ && leave_->status() == Status::ok;
    leave_.reset();
    if (parts) group->leave();
    stopping_ = stopping_ || parts;
    ++done;
  }
  if (stopping_ || !auditor.begun) return done;
  const std::uint64_t now = progress->fabric().now_ns();
  if (now < next_at_ns_) {
    progress->fabric().wake_at(next_at_ns_);
    return done;
  }
  for (AuditedCall& call : calls_)
    if (!call.under_way) begin(call), ++done;
  next_at_ns_ = now + (below(2) == 0 ? 0 : below(10'000));
  if (next_at_ns_ > now) progress->fabric().wake_at(next_at_ns_);
  return done;
}

void AuditedStore::begin(AuditedCall& call) {
  call.key = below(2) == 0 ? below(3) : below(auditor.key_count);
  KeyCalls& history = auditor.keys.at(call.key);
  if (history.full()) return;
  call.call = below(2) == 0 ? KeyCall::get : static_cast<KeyCall>(below(5));
  const std::uint64_t number = ++auditor.values;
  call.value = value_of(number, std::array<std::size_t, 5>{1, 2, 25, 30, 160}.at(below(5)));
  call.record = history.add({.call = call.call, .writes = number, .begin = ++auditor.events});
  call.under_way = true;
  const std::uint64_t key = key_of(call.key);
  switch (call.call) {
    case KeyCall::get:
      return store->get(*call.operation, key);
    case KeyCall::put:
      return store->put(*call.operation, key, call.value);
    case KeyCall::insert:
      return store->insert(*call.operation, key, call.value);
    case KeyCall::erase:
      return store->erase(*call.operation, key);
    case KeyCall::append:
      return store->update(*call.operation, key,
                           [&call](std::optional<std::span<const std::byte>>) {
                             return StoreUpdate::put(call.value);
                           });
  }
}

void AuditedStore::end(AuditedCall& call) {
  call.under_way = false;
  KeyCalls& history = auditor.keys.at(call.key);
  switch (call.operation->status()) {
    case Status::ok:
      break;
    case Status::lost:
      ++auditor.seen.lost;
      EXPECT_TRUE(auditor.is_troubled || (leaves_group_ && stopping_)) << "STO-M1: a key is lost";
      EXPECT_TRUE(auditor.options.copies == 1 || auditor.may_have_lost_keys(rank))
          << "STO-C1: a key is lost";
      return;
    case Status::stopped:
      ++auditor.seen.stopped;
      return;
    case Status::abandoned:
      ++auditor.seen.abandoned;
      return;
    case Status::full:
    case Status::no_room:
      ++auditor.seen.no_room;
      return history.strike(call.record);
    default:
      ADD_FAILURE() << remote::describe(call.operation->status());
      return;
  }
  ++auditor.seen.calls;
  if (rank >= auditor.founders) ++auditor.seen.calls_of_joiners;
  KeyCallRecord& record = history[call.record];
  record.found = call.operation->found();
  record.end = ++auditor.events;
  if (record.found) ++auditor.seen.found;
  const bool has_value =
      call.call == KeyCall::get || call.call == KeyCall::insert || call.call == KeyCall::append;
  if (record.found && has_value) record.saw = number_of(call.operation->value());
  if (call.call == KeyCall::erase || call.operation->version() == 0) return;
  const bool wrote = call.call != KeyCall::get && call.operation->changed();
  const std::uint64_t holds = wrote ? record.writes : record.saw;
  const auto [known, is_new] =
      auditor.versions.at(call.key).emplace(call.operation->version(), holds);
  EXPECT_TRUE(is_new || known->second == holds) << "STO-1: two values have one version";
}

TEST(StoreInSimulator, KeepsItsPromisesWhateverHappens) {
  const test::Seeds seeds(kStoreSeeds);
  StoreSeen seen;
  Histories histories;
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    StoreAuditor auditor(seed, seen);
    auditor.run();
    if (seed - seeds.first < kSeedsForChecker) auditor.tell(histories);
  });
  for (const std::uint64_t count :
       {seen.calls, seen.found, seen.lost, seen.stopped, seen.abandoned, seen.repaired_locks,
        seen.cache_hits, seen.cache_stale, seen.read_again, seen.last_gets, seen.calls_of_joiners,
        seen.splits, seen.copies_restored, seen.leaves, seen.keys_moved})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.text() << "\n";
  if (!Histories::why_not().empty()) return;
  const Histories::Verdict verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
}

TEST(StoreInSimulator, KeepsItsPromisesWhileItEvicts) {
  const test::Seeds seeds(kEvictionSeeds);
  StoreSeen seen;
  test::for_each_seed(seeds,
                      [&](std::uint64_t seed) { StoreAuditor(seed, seen, Eviction::lru).run(); });
  for (const std::uint64_t count : {seen.calls, seen.found, seen.lost, seen.repaired_locks,
                                    seen.evictions, seen.waits_for_room, seen.marks})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.calls << " calls, " << seen.found << " found their key, " << seen.evictions
            << " keys evicted, " << seen.waits_for_room << " waits for room, " << seen.no_room
            << " without room, " << seen.marks << " marks, " << seen.lost << " lost, "
            << seen.repaired_locks << " locks repaired\n";
}

}  // namespace
}  // namespace dunlin
