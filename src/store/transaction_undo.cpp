#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "store/state.hpp"

/// Transactions that are not committed, and those whose callers have given them up.
namespace dunlin::store {

using remote::Status;

/// It ends with that status, and has changed nothing. With copies, the failure of a home is a
/// conflict, once the members have agreed on it: another attempt finds the keys at other homes.
bool State::fail(TransactionWork& work, Status status) noexcept {
  const bool finds_them_elsewhere = status == Status::lost && has_moved_keys(work);
  work.end_status = finds_them_elsewhere ? Status::conflict : status;
  work.awaits_death = has_copies() && status == Status::lost;
  undo(work);
  return true;
}

/// Gives locks and blocks back, as soon as nothing is read from this process's memory any more.
void State::undo(TransactionWork& work) noexcept {
  work.stage = TransactionStage::roll_back;
  give_locks_back(work);
  fabric.abandon(work.done);
  if (rolled_back(work)) return;
  look_again_soon();
}

void State::give_locks_back(TransactionWork& work) noexcept {
  for (TransactionWrite* const write : work.order) {
    if (!write->begun) continue;
    write->hold.abandon();
    write->lock->give_up();
  }
}

void State::give_headers_back(TransactionWork& work) noexcept {
  for (const TransactionHeader& header : work.headers)
    if (header.has_block) small->cancel(header.block);
  work.headers.clear();
}

bool State::rolled_back(TransactionWork& work) noexcept {
  if (!shares_ended(work) || awaits_death(work)) return false;
  const auto give_back = [&](remote::SlabPool& pool, std::deque<remote::SlabBlock>& to_free,
                             const remote::SlabBlock& block, bool is_linked) {
    if (!is_linked) return pool.cancel(block);
    if (fault(block.home) == Status::ok) to_free.push_back(block);
  };
  for (TransactionWrite* const write : work.order) {
    if (write->has_block)
      give_back(write->is_large ? *large : *small, write->is_large ? large_to_free : small_to_free,
                write->block, write->is_linked);
    write->has_block = false;
  }
  for (TransactionBucket& bucket : work.buckets) {
    if (bucket.has_block) give_back(*small, small_to_free, bucket.block, bucket.is_linked);
    bucket.has_block = false;
  }
  give_headers_back(work);
  release_record(work);
  work.stage = TransactionStage::done;
  return true;
}

bool State::awaits_death(TransactionWork& work) noexcept {
  if (!work.awaits_death) return false;
  if (rests(work.rest)) return true;
  for (Rank home = 0; home < places; ++home) {
    if (!fabric.failed(home) || !progress.contains(home)) continue;
    begin_rest(work.rest);
    return true;
  }
  work.awaits_death = false;
  work.end_status = status_without(work);
  return false;
}

/// Of one that a home has failed.
Status State::status_without(const TransactionWork& work) const noexcept {
  const bool is_over =
      std::ranges::any_of(work.order,
                          [&](const TransactionWrite* write) {
                            return is_lost(home_of(write->hash),
                                           IndexShape::position_of(write->hash)) ||
                                   homes[write->home].withdrawn;
                          }) ||
      std::any_of(work.reads.begin(),
                  work.reads.begin() + static_cast<std::ptrdiff_t>(work.used_reads),
                  [](const auto& one) { return one->operation->status() == Status::lost; });
  return is_over ? Status::lost : Status::conflict;
}

/// Whether both homes of a key have failed before they had all of it.
bool State::has_lost_a_key(const TransactionWork& work) noexcept {
  const auto is_lost_at = [&](Rank home) {
    return std::any_of(work.shares.begin(),
                       work.shares.begin() + static_cast<std::ptrdiff_t>(work.used_shares),
                       [&](const auto& share) { return share->home == home && share->is_lost; });
  };
  return std::ranges::any_of(work.order, [&](const TransactionWrite* write) {
    return write->first == nullptr && is_lost_at(write->home) &&
           (write->copy == nullptr || is_lost_at(write->copy->home));
  });
}

void State::release_record(TransactionWork& work) noexcept {
  if (work.record == TransactionWork::kNoRecord) return;
  transaction_records &= ~(1U << work.record);
  work.record = TransactionWork::kNoRecord;
}

/// This process is no member any more: the homes finish the rest.
void State::drop(TransactionWork& work) noexcept {
  for (TransactionWrite* const write : work.order)
    if (write->begun) write->lock->pass_on();
  fabric.abandon(work.done);
  for (std::size_t i = 0; i < work.used_shares; ++i) fabric.abandon(work.shares[i]->done);
  work.stage = TransactionStage::done;
}

/// Those that their callers have given up.
std::size_t State::finish_transactions() {
  std::size_t done = 0;
  for (std::size_t i = 0; i < unfinished_transactions.size();) {
    TransactionWork& work = *unfinished_transactions[i];
    if (progress.stopped()) drop(work);
    int steps = 0;
    while (steps < kStepsAtOnce && work.stage != TransactionStage::done && step(work)) ++steps;
    done += static_cast<std::size_t>(steps);
    if (work.stage != TransactionStage::done) {
      ++i;
      continue;
    }
    give_back(std::move(unfinished_transactions[i]));
    unfinished_transactions[i] = std::move(unfinished_transactions.back());
    unfinished_transactions.pop_back();
  }
  return done;
}

}  // namespace dunlin::store
