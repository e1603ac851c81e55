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
  // Another attempt finds the keys at other homes.
  if (!state_.has_copies()) co_return has_moved_keys() ? Status::conflict : Status::lost;
  const auto awaits_death = [&] {
    for (Rank home = 0; home < state_.places; ++home)
      if (fabric().failed(home) && state_.progress.contains(home)) return true;
    return false;
  };
  while (awaits_death()) co_await rest_.next(fabric());
  co_return is_over() ? Status::lost : Status::conflict;
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
  if (state_.has_copies() && has_lost_a_key()) status = Status::lost;
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

/// Whether a further attempt finds a key at another home.
bool Commit::has_moved_keys() const noexcept {
  const auto is_elsewhere = [&](std::uint64_t hash, Rank at) {
    const Rank home = state_.home_of(hash);
    const std::uint64_t position = IndexShape::position_of(hash);
    if (state_.has_copies())
      return !state_.progress.is_gone(at) && state_.first_of(home, position) != at;
    return state_.has_moved(home, position) && state_.place_of(home, position) != at;
  };
  return std::ranges::any_of(work_->order,
                             [&](const TransactionWrite* write) {
                               return !write->is_copy() && is_elsewhere(write->hash, write->home);
                             }) ||
         std::ranges::any_of(work_->all_reads(), [&](const auto& one) {
           return !one->is_own && is_elsewhere(one->seen.hash, one->seen.home);
         });
}

/// With two copies, they may have become others while the locks were taken.
bool Commit::has_other_homes() const noexcept {
  return state_.has_copies() && std::ranges::any_of(work_->order, [&](const auto* write) {
           if (write->is_copy()) return false;
           const KeyHomes now =
               state_.homes_of(state_.home_of(write->hash), IndexShape::position_of(write->hash));
           const std::optional<Rank> copy =
               write->copy == nullptr ? std::nullopt : std::optional(write->copy->home);
           return now.first != write->home || now.second != copy;
         });
}

/// Whether no further attempt can find all keys, as both homes of one have failed.
bool Commit::is_over() const noexcept {
  return std::ranges::any_of(work_->order,
                             [&](const TransactionWrite* write) {
                               return state_.is_lost(state_.home_of(write->hash),
                                                     IndexShape::position_of(write->hash)) ||
                                      state_.homes[write->home].withdrawn;
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

/// Whether both homes of a key have failed before they had all of it.
bool Commit::has_lost_a_key() const noexcept {
  return std::ranges::any_of(work_->order, [&](const TransactionWrite* write) {
    return !write->is_copy() && is_lost_at(write->home) &&
           (write->copy == nullptr || is_lost_at(write->copy->home));
  });
}

}  // namespace dunlin::store
