#include <cstddef>
#include <deque>
#include <utility>

#include "fault_injection.hpp"
#include "store/state.hpp"

/// Transactions that are not committed, and those whose callers have given them up.
namespace dunlin::store {

using remote::Status;

/// It ends with that status, and has changed nothing.
bool State::fail(TransactionWork& work, Status status) noexcept {
  work.end_status = status;
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
    StoreOperation& op = *write->hold;
    const Work& held = *op.work_;
    if (!op.finished()) {
      op.abandon();  // gives back what it has
    } else if (op.status() == Status::ok && fault(held.home) == Status::ok &&
               !is_injected(FaultInjection::given_up_lock_stays)) {
      mends.push_back({held.home, held.main.at(kLockAt), work.lock_word});
      look_again_soon();
    }
  }
}

void State::give_headers_back(TransactionWork& work) noexcept {
  for (const TransactionHeader& header : work.headers)
    if (header.has_block) small->cancel(header.block);
  work.headers.clear();
}

bool State::rolled_back(TransactionWork& work) noexcept {
  if (!shares_ended(work)) return false;
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

void State::release_record(TransactionWork& work) noexcept {
  if (work.record == TransactionWork::kNoRecord) return;
  transaction_records &= ~(1U << work.record);
  work.record = TransactionWork::kNoRecord;
}

/// This process is no member any more: the homes finish the rest.
void State::drop(TransactionWork& work) noexcept {
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
