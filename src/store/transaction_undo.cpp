#include <algorithm>
#include <optional>

#include "store/state.hpp"

/// How commits end, and what those give back that have changed nothing.
namespace dunlin::store {

using remote::Protocol;
using remote::Status;

Commit::~Commit() {
  if (work_ == nullptr) return;
  if (is_posted_) {  // this process is no member any more
    pass_locks_on();
    for (const auto& share : work_->all_shares()) fabric().abandon(share->done);
  }
  give_locks_back();
  give_blocks_back();
  release_record();
}

void Commit::give_locks_back() noexcept {
  for (TransactionWrite* const write : work_->order) write->held.reset();
}

/// The batches unlock the chains, or the homes do.
void Commit::pass_locks_on() noexcept {
  for (TransactionWrite* const write : work_->order)
    if (write->held) write->held->lock.pass_on();
}

Protocol<Status> Commit::why_nothing_happens(Status status) {
  if (status != Status::lost) co_return status;
  if (state_.placement == nullptr) co_return Status::lost;
  while (awaits_decision() && state_.placement->why_stopped().empty())
    co_await rest_.next(fabric());
  co_return is_over() ? Status::lost : Status::conflict;  // another attempt finds other owners
}

void Commit::failed(Status status) noexcept {
  const auto free_later = [&](WantedBlock& wanted) {
    if (!wanted.block) return;
    if (state_.fault(wanted.home) == Status::ok)
      state_.leftovers.free(wanted.is_large, *wanted.block);
    wanted.block.reset();
  };
  for (TransactionWrite* const write : work_->order) free_later(write->entry_block);
  for (TransactionBucket& bucket : work_->buckets) free_later(bucket.header);
  is_posted_ = false;
  work_->outcome = status;
}

void Commit::happened(Status status) noexcept {
  if (work_->used_copies > 0 && has_lost_a_key()) status = Status::lost;
  pass_locks_on();
  for (TransactionWrite* const write : work_->order) {
    write->entry_block.block.reset();
    if (write->is_copy()) continue;
    if (write->puts())
      state_.cache.insert(write->hash, write->new_slot.word);
    else
      state_.cache.erase(write->hash);
  }
  for (TransactionBucket& bucket : work_->buckets) bucket.header.block.reset();
  is_posted_ = false;
  work_->outcome = status;
}

/// Blocks that have been posted are not taken back.
void Commit::give_back(WantedBlock& wanted) noexcept {
  if (wanted.block && !is_posted_)
    (wanted.is_large ? *state_.large : *state_.small).cancel(*wanted.block);
  wanted.block.reset();
}

void Commit::give_blocks_back() noexcept {
  for (TransactionWrite* const write : work_->order) give_back(write->entry_block);
  for (TransactionBucket& bucket : work_->buckets) give_back(bucket.header);
  for (WantedBlock& header : work_->headers) give_back(header);
}

void Commit::release_record() noexcept {
  if (work_->record == TransactionWork::kNoRecord) return;
  state_.transactions.release_record(work_->record);
  work_->record = TransactionWork::kNoRecord;
}

// --- where the keys are now ----------------------------------------------------------------------

/// Whether the map has changed what it says of a key since this commit looked there. The copies of
/// a write were taken from the map itself, which may be ahead of the routes.
bool Commit::has_moved_keys() const noexcept {
  return std::ranges::any_of(work_->order,
                             [&](const TransactionWrite* write) {
                               return state_.routes.of(write->hash) != write->route ||
                                      route::of(state_.slot_of(write->hash)) != write->route;
                             }) ||
         std::ranges::any_of(work_->all_reads(), [&](const auto& one) {
           return !one->is_own && state_.routes.of(one->seen.hash) != one->seen.route;
         });
}

/// Whether a member has failed of which the map does not say so yet.
bool Commit::awaits_decision() const noexcept {
  const auto awaits = [&](Rank home, std::uint64_t hash, std::uint64_t route) {
    return state_.fault(home) == Status::lost && state_.routes.of(hash) == route;
  };
  return std::ranges::any_of(work_->order,
                             [&](const TransactionWrite* write) {
                               return awaits(write->home, write->hash, write->route);
                             }) ||
         std::ranges::any_of(work_->all_reads(), [&](const auto& one) {
           return !one->is_own && awaits(one->seen.home, one->seen.hash, one->seen.route);
         });
}

/// Whether no further attempt can find all keys.
bool Commit::is_over() const noexcept {
  return std::ranges::any_of(work_->order,
                             [&](const TransactionWrite* write) {
                               return route::is_lost(state_.routes.of(write->hash));
                             }) ||
         std::ranges::any_of(work_->all_reads(), [](const auto& one) {
           return one->operation.status() == Status::lost;
         });
}

bool Commit::is_lost_at(Rank home) const noexcept {
  return std::ranges::any_of(work_->all_shares(), [&](const auto& share) {
    return share->home == home && share->is_lost;
  });
}

/// Whether all members with a key have failed before they had all of it.
bool Commit::has_lost_a_key() const noexcept {
  return std::ranges::any_of(work_->order, [&](const TransactionWrite* write) {
    return !write->is_copy() && is_lost_at(write->home) &&
           std::ranges::all_of(write->copies, [&](const TransactionWrite* copy) {
             return copy == nullptr || is_lost_at(copy->home);
           });
  });
}

}  // namespace dunlin::store
