#include "support/seeds.hpp"

#include <array>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/audited_stores.hpp"
#include "support/rounds.hpp"

/// Random histories in the simulator.
namespace dunlin {
namespace test {

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
  StoreOptions options = auditor.options;
  options.contributes = rank >= auditor.founders;
  store = std::make_unique<Store>(*progress, options);
  for (AuditedCall& call : calls_) call.operation = std::make_unique<StoreOperation>();
}

std::size_t AuditedStore::step() {
  std::size_t done = 0;
  auditor.look_for_deaths();
  for (AuditedCall& call : calls_) {
    if (!stopping_ && call.under_way && !call.operation->finished() && below(300) == 0)
      call.operation->abandon();
    if (call.under_way && call.operation->finished()) end(call), ++done;
  }
  if (take_ && take_->finished()) {
    if (take_->status() == Status::ok) ++auditor.seen.takes;
    if (take_->status() == Status::ok && auditor.options.copies > 1)
      ++auditor.seen.takes_with_copies;
    take_.reset();
    ++done;
  }
  if (leave_ && leave_->finished()) {
    if (leave_->status() == Status::ok) ++auditor.seen.leaves;
    if (leave_->status() == Status::ok && auditor.options.copies > 1)
      ++auditor.seen.leaves_with_copies;
    const bool parts = leaves_group_ && leave_->status() == Status::ok;
    leave_.reset();
    has_left_ = has_left_ || parts;
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
  if (auditor.is_removed(rank) && !call.operation->changed()) return history.strike(call.record);
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

}  // namespace test

namespace {

using test::Histories;
using test::Schedule;
using test::StoreAuditor;
using test::StoreSeen;

const std::uint64_t kStoreSeeds = test::rounds(1'000);
const std::uint64_t kMoveSeeds = test::rounds(300);
const std::uint64_t kEvictionSeeds = test::rounds(400);
/// Of the seeds, those whose histories the independent checker sees, too.
constexpr std::uint64_t kSeedsForChecker = 200;

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
        seen.splits, seen.copies_restored, seen.leaves, seen.leaves_with_copies, seen.takes,
        seen.takes_with_copies, seen.keys_moved})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.text() << "\n";
  if (!Histories::why_not().empty()) return;
  const Histories::Verdict verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
}

/// With two copies, and one death: no key is lost.
TEST(StoreInSimulator, KeepsItsPromisesWhileKeysMoveAndOneDies) {
  const test::Seeds seeds(kMoveSeeds);
  StoreSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    StoreAuditor(seed, seen, Schedule::moves).run();
    EXPECT_EQ(seen.lost, 0U) << "STO-C1: a key is lost";
  });
  for (const std::uint64_t count :
       {seen.calls, seen.found, seen.abandoned, seen.repaired_locks, seen.cache_hits,
        seen.calls_of_joiners, seen.copies_restored, seen.leaves_with_copies,
        seen.takes_with_copies, seen.keys_moved, seen.deaths_amid_moves, seen.last_gets})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.deaths_amid_moves << " deaths, " << seen.text() << "\n";
}

TEST(StoreInSimulator, KeepsItsPromisesWhileItEvicts) {
  const test::Seeds seeds(kEvictionSeeds);
  StoreSeen seen;
  test::for_each_seed(
      seeds, [&](std::uint64_t seed) { StoreAuditor(seed, seen, Schedule::evicts).run(); });
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
