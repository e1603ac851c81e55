#include "store/transaction.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "store/state.hpp"

/// Transactions: the calls, and a commit from its begin to its end. transaction_lock.cpp has what
/// it does until it is known that it may happen, transaction_commit.cpp the rest.
namespace dunlin {

using remote::Protocol;
using remote::Status;
using store::Kind;

StoreTransaction::StoreTransaction(Store& store)
    : Call(store.progress(), Status::ok),
      transactions_(store.state_->transactions),
      work_(transactions_.take_work()) {}
StoreTransaction::~StoreTransaction() { abandon(); }
std::size_t StoreTransaction::gets() const noexcept { return work_->used_reads; }
std::size_t StoreTransaction::changes() const noexcept { return work_->used_writes; }

void StoreTransaction::clear() {
  abandon();
  // A commit that goes on has the other one.
  if (work_.use_count() > 1) work_ = transactions_.take_work();
  work_->clear();
}

StoreTransaction& StoreTransaction::commit() {
  abandon();
  if (work_.use_count() > 1) work_ = transactions_.take_work();
  static_cast<Call&>(*this) = Call(progress(), transactions_.commit(work_));
  return *this;
}

StoreOperation& StoreTransaction::get(StoreKey key) { return transactions_.get(*work_, key); }
void StoreTransaction::put(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  store::Transactions::add(*work_, Kind::put, key, value, ttl_ns);
}
void StoreTransaction::insert(StoreKey key, std::span<const std::byte> value,
                              std::uint64_t ttl_ns) {
  store::Transactions::add(*work_, Kind::insert, key, value, ttl_ns);
}
void StoreTransaction::erase(StoreKey key) {
  store::Transactions::add(*work_, Kind::erase, key, {}, kNoExpiry);
}

remote::Status run_transaction(
    Store& store, const std::function<TransactionAction(StoreTransaction& transaction)>& function,
    std::uint32_t attempts) {
  StoreTransaction transaction(store);
  store::Rest rest;
  Status status = Status::conflict;
  for (std::uint32_t i = 0; i < attempts && status == Status::conflict; ++i) {
    if (i > 0) {
      const std::uint64_t until_ns = store.fabric().now_ns() + rest.next_ns();
      while (store.fabric().now_ns() < until_ns) store.poll();
    }
    transaction.clear();
    if (function(transaction) == TransactionAction::cancel) return Status::abandoned;
    status = transaction.commit().wait();
  }
  return status;
}

namespace store {

using remote::Until;

// --- what is to be done --------------------------------------------------------------------------

Transactions::Transactions(State& state) noexcept : state_(state), completing_(state.progress) {}
remote::Progress& Transactions::its_progress() const noexcept { return state_.progress; }

std::shared_ptr<TransactionWork> Transactions::take_work() {
  return {spares_.take().release(), [this](TransactionWork* work) {
            for (const auto& read : work->reads) read->operation = {};  // which are of this store
            work->clear();
            spares_.give_back(std::unique_ptr<TransactionWork>(work));
          }};
}

void TransactionWork::clear() noexcept {
  for (const auto& read : all_reads()) read->operation.abandon();
  used_reads = used_writes = 0;
  beyond = Status::ok;
}

StoreOperation& Transactions::get(TransactionWork& work, StoreKey key) {
  if (work.used_reads == work.reads.size())
    work.reads.push_back(std::make_unique<TransactionRead>());
  TransactionRead& one = *work.reads[work.used_reads++];
  TransactionWrite* const own = work.find(key);
  one.is_own = own != nullptr;
  if (work.used_reads > kMaxTransactionReads) work.beyond = Status::out_of_range;
  one.operation.abandon();
  if (own == nullptr)
    one.operation = state_.begin_read(key, one.seen);
  else
    one.operation = StoreOperation(state_.progress, own_value(*own));
  return one.operation;
}

/// What a get sees of a key that the transaction has changed itself.
CallResult Transactions::own_value(TransactionWrite& write) {
  ++state_.counters.gets;
  CallResult result;
  result.memory = state_.take_memory();
  if (!write.puts()) return result;
  Image& image = result.memory->entry;
  image.reserve(std::max<std::size_t>(write.value_bytes, 1));
  if (write.value_bytes > 0)
    std::memcpy(image.data(), write.entry.data() + kEntryHeadBytes + write.key_bytes,
                write.value_bytes);
  result.found = true;
  result.value = {image.data(), write.value_bytes};
  result.ttl_ns = write.ttl_ns;
  return result;
}

TransactionWrite* TransactionWork::find(StoreKey key) const noexcept {
  for (std::size_t i = 0; i < used_writes; ++i)
    if (std::ranges::equal(key.bytes(), writes[i]->key_span())) return writes[i].get();
  return nullptr;
}

void Transactions::add(TransactionWork& work, Kind kind, StoreKey key,
                       std::span<const std::byte> value, std::uint64_t ttl_ns) {
  const std::span<const std::byte> bytes = key.bytes();
  TransactionWrite* one = work.find(key);
  const bool is_long = bytes.size() > kMaxStoreKeyBytes || value.size() > kMaxStoreValueBytes;
  if (is_long || (one == nullptr && work.used_writes == kMaxTransactionWrites)) {
    work.beyond = is_long ? Status::too_long : Status::out_of_range;
    return;
  }
  if (one == nullptr) {
    if (work.used_writes == work.writes.size())
      work.writes.push_back(std::make_unique<TransactionWrite>());
    one = work.writes[work.used_writes++].get();
    one->key_bytes = bytes.size();
    if (!bytes.empty()) std::memcpy(one->key.data(), bytes.data(), bytes.size());
    one->hash = hash_of(bytes);
  }
  one->kind = kind;
  one->ttl_ns = ttl_ns;
  one->value_bytes = value.size();
  one->entry.reserve(entry_bytes(one->key_bytes, one->value_bytes));
  std::byte* const to = one->entry.data() + kEntryHeadBytes;
  if (one->key_bytes > 0) std::memcpy(to, one->key.data(), one->key_bytes);
  if (!value.empty()) std::memcpy(to + one->key_bytes, value.data(), value.size());
}

// --- the commit ----------------------------------------------------------------------------------

/// A commit from its begin to its end. Once its entries are posted, it does not need its caller.
Protocol<Status> Transactions::commit(std::shared_ptr<TransactionWork> work) {
  Commit commit(state_, work);
  Status status = co_await commit.get_ready();
  if (status != Status::ok) {
    commit.give_locks_back();
    status = co_await commit.why_nothing_happens(status);
  }
  if (status != Status::ok || commit.changes_nothing()) co_return status;
  work->outcome = Status::under_way;
  if (!completing_.start(complete(std::move(commit)))) co_return Status::no_memory;
  co_await Until([&work] { return work->outcome != Status::under_way; });
  co_return work->outcome;
}

/// A commit that may happen, whether or not its caller has given it up (STO-9).
Protocol<Status> Transactions::complete(Commit commit) {
  commit.build();
  Status status = co_await commit.post_entries();
  if (commit.is_at_one_home()) {
    commit.happened(status);
    co_return status;
  }
  if (status == Status::ok) {
    status = co_await commit.post_mark();
    // The mark may have landed. If it is the other member that has failed, no other member has seen
    // it; if the members agree that it is this one, they look themselves.
    if (status != Status::ok) co_await Until([&commit] { return commit.is_decider_gone(); });
  }
  if (status != Status::ok) {
    commit.give_locks_back();
    status = co_await commit.why_nothing_happens(Status::lost);
    commit.failed(status);
    co_return status;
  }
  static_cast<void>(co_await commit.post_slots());
  // STO-C5. All other homes have the mark now, so if this process and the first of them die, they
  // still know what readers of that one may have seen.
  static_cast<void>(co_await commit.post_slots_of_decider());
  commit.happened(Status::ok);
  co_return Status::ok;
}

std::optional<std::size_t> Transactions::take_record() noexcept {
  for (std::size_t i = 0; i < kTransactionRecords; ++i) {
    if ((records_ >> i & 1) != 0) continue;
    records_ |= 1U << i;
    return i;
  }
  return std::nullopt;
}

void Transactions::release_record(std::size_t record) noexcept {
  DUNLIN_ASSERT((records_ >> record & 1) != 0, "STO-8: a record belongs to one commit at a time");
  records_ &= ~(1U << record);
}

std::size_t Transactions::poll() { return completing_.advance(state_.progress.stopped()); }
void Transactions::stop() noexcept { completing_.end_all(Status::stopped); }

}  // namespace store
}  // namespace dunlin
