#include "store/transaction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/state.hpp"

/// Transactions: the calls, and a commit up to the point at which it is known that it may happen.
/// transaction_commit.cpp has the rest.
namespace dunlin {

using remote::Status;
using store::Kind;
using store::TransactionRead;
using store::TransactionStage;
using store::TransactionWrite;

StoreTransaction::StoreTransaction(Store& store)
    : InFlight(store.progress()), store_(*store.state_), work_(store_.take_transaction()) {}
StoreTransaction::~StoreTransaction() {
  abandon();
  store_.give_back(std::move(work_));
}
void StoreTransaction::advance() noexcept { store_.advance(*this); }
void StoreTransaction::clean_up() noexcept { store_.clean_up(*this); }
std::size_t StoreTransaction::gets() const noexcept { return work_->used_reads; }
std::size_t StoreTransaction::changes() const noexcept { return work_->used_writes; }

void StoreTransaction::clear() noexcept {
  abandon();
  store_.clear(*work_);
}

StoreTransaction& StoreTransaction::commit() noexcept {
  abandon();
  work_->begin();
  start();
  return *this;
}

StoreOperation& StoreTransaction::get(StoreKey key) { return store_.get(*work_, key); }
void StoreTransaction::put(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  store_.add(*work_, Kind::put, key, value, ttl_ns);
}
void StoreTransaction::insert(StoreKey key, std::span<const std::byte> value,
                              std::uint64_t ttl_ns) {
  store_.add(*work_, Kind::insert, key, value, ttl_ns);
}
void StoreTransaction::erase(StoreKey key) { store_.add(*work_, Kind::erase, key, {}, kNoExpiry); }

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

// --- what is to be done --------------------------------------------------------------------------

std::unique_ptr<TransactionWork> State::take_transaction() {
  if (spare_transactions.empty()) return std::make_unique<TransactionWork>();
  std::unique_ptr<TransactionWork> work = std::move(spare_transactions.back());
  spare_transactions.pop_back();
  return work;
}

void State::give_back(std::unique_ptr<TransactionWork> work) noexcept {
  if (work == nullptr) return;
  clear(*work);
  // They are of a store's state, and end before it does.
  for (const auto& one : work->writes) one->forget_chain();
  for (const auto& one : work->copies) one->forget_chain();
  for (const auto& one : work->reads) one->operation.reset();
  spare_transactions.push_back(std::move(work));
}

void State::clear(TransactionWork& work) noexcept {
  for (std::size_t i = 0; i < work.used_reads; ++i) work.reads[i]->operation->abandon();
  work.used_reads = work.used_writes = 0;
  work.beyond = Status::ok;
}

StoreOperation& State::get(TransactionWork& work, StoreKey key) {
  if (work.used_reads == work.reads.size())
    work.reads.push_back(std::make_unique<TransactionRead>());
  TransactionRead& one = *work.reads[work.used_reads++];
  TransactionWrite* const own = find(work, key);
  one.is_own = own != nullptr;
  if (work.used_reads > kMaxTransactionReads) work.beyond = Status::out_of_range;
  if (one.operation == nullptr) one.operation = std::make_unique<StoreOperation>();
  StoreOperation& op = *one.operation;
  op.abandon();
  if (own == nullptr)
    op = begin_read(key, one.seen);
  else
    op = StoreOperation(progress, own_value(*own));
  return op;
}

/// What a get sees of a key that the transaction has changed itself.
CallResult State::own_value(TransactionWrite& write) {
  ++counters.gets;
  CallResult result;
  result.memory = take_memory();
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

TransactionWrite* State::find(TransactionWork& work, StoreKey key) noexcept {
  const std::span<const std::byte> bytes = key.bytes();
  for (std::size_t i = 0; i < work.used_writes; ++i) {
    const std::span<const std::byte> other = work.writes[i]->key_span();
    if (std::equal(bytes.begin(), bytes.end(), other.begin(), other.end()))
      return work.writes[i].get();
  }
  return nullptr;
}

void State::add(TransactionWork& work, Kind kind, StoreKey key, std::span<const std::byte> value,
                std::uint64_t ttl_ns) {
  const std::span<const std::byte> bytes = key.bytes();
  TransactionWrite* one = find(work, key);
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

// --- the commit, step by step --------------------------------------------------------------------

void State::advance(StoreTransaction& transaction) noexcept {
  TransactionWork& work = *transaction.work_;
  for (int steps = 0; steps < kStepsAtOnce; ++steps) {
    if (!step(work)) return;
    if (work.stage != TransactionStage::done) continue;
    transaction.end(work.end_status);
    return;
  }
  look_again_soon();
}

/// REM-3, STO-9. A commit whose entries have been posted goes on without its caller.
void State::clean_up(StoreTransaction& transaction) noexcept {
  TransactionWork& work = *transaction.work_;
  if (work.stage == TransactionStage::done) return;
  if (work.stage < TransactionStage::prepare) undo(work);
  if (work.stage == TransactionStage::done) return;
  std::unique_ptr<TransactionWork> next = take_transaction();
  std::swap(next->reads, work.reads);  // which the caller may still look at
  next->used_reads = std::exchange(work.used_reads, 0);
  unfinished_transactions.push_back(std::exchange(transaction.work_, std::move(next)));
  look_again_soon();
}

bool State::step(TransactionWork& work) noexcept {
  switch (work.stage) {
    case TransactionStage::gets:
      return gets_ended(work);
    case TransactionStage::room:
      return find_room(work);
    case TransactionStage::record:
      return take_record(work);
    case TransactionStage::hold:
      return hold(work);
    case TransactionStage::validate:
      return validate(work);
    case TransactionStage::validated:
      return validated(work);
    case TransactionStage::plan:
      return plan(work);
    case TransactionStage::headers:
      return find_headers(work);
    case TransactionStage::prepare:
    case TransactionStage::apply:
    case TransactionStage::apply_at_decider:
      return post_shares(work);
    case TransactionStage::prepared:
      return prepared(work);
    case TransactionStage::decide:
      return decide(work);
    case TransactionStage::decided:
      return decided(work);
    case TransactionStage::in_doubt:
      return in_doubt(work);
    case TransactionStage::applied_elsewhere:
      return applied_elsewhere(work);
    case TransactionStage::applied:
      return applied(work);
    case TransactionStage::roll_back:
      return rolled_back(work);
    case TransactionStage::done:
      return false;
  }
  return false;
}

void TransactionWrite::forget_chain() noexcept {
  hold.abandon();
  lock.reset();
  at.reset();
}

void TransactionWork::begin() noexcept {
  end_status = beyond;
  stage = TransactionStage::gets;
  order.clear();
  chains.clear();
  buckets.clear();
  headers.clear();
  room_since_ns = 0;
  rest = {};
  used_copies = used_shares = posted = 0;
  awaits_death = false;
  record = kNoRecord;
  done.reset();
}

bool State::gets_ended(TransactionWork& work) noexcept {
  if (work.end_status != Status::ok) return fail(work, work.end_status);
  for (std::size_t i = 0; i < work.used_reads; ++i) {
    const StoreOperation& read = *work.reads[i]->operation;
    if (!read.finished()) return false;
    if (read.status() != Status::ok) return fail(work, read.status());
  }
  for (std::size_t i = 0; i < work.used_writes; ++i) {
    TransactionWrite& write = *work.writes[i];
    write.home = first_home_of(write.hash);
    write.copy = nullptr;
    add_to_order(work, write);
    const std::optional<Rank> second = second_home_of(write.hash);
    if (!second) continue;
    write.copy = &copy_of(work, write);
    write.copy->home = *second;
    add_to_order(work, *write.copy);
  }
  // The order of (home, main header) at all members, so that no members wait in a circle.
  std::sort(work.order.begin(), work.order.end(), [](const auto* one, const auto* other) {
    return std::pair(one->home, IndexShape::position_of(one->hash)) <
           std::pair(other->home, IndexShape::position_of(other->hash));
  });
  work.stage = work.order.empty() ? TransactionStage::validate : TransactionStage::room;
  return true;
}

void State::add_to_order(TransactionWork& work, TransactionWrite& write) {
  write.begun = write.has_block = write.is_linked = false;
  write.asked_for = SIZE_MAX;
  write.bucket = SIZE_MAX;
  work.order.push_back(&write);
}

/// The same change, for the key's second home.
TransactionWrite& State::copy_of(TransactionWork& work, TransactionWrite& write) {
  if (work.used_copies == work.copies.size())
    work.copies.push_back(std::make_unique<TransactionWrite>());
  TransactionWrite& copy = *work.copies[work.used_copies++];
  copy.first = &write;
  copy.kind = write.kind;
  copy.hash = write.hash;
  copy.key_bytes = write.key_bytes;
  copy.key = write.key;
  copy.value_bytes = write.value_bytes;
  const std::size_t bytes = entry_bytes(write.key_bytes, write.value_bytes);
  copy.entry.reserve(bytes);
  std::memcpy(copy.entry.data(), write.entry.data(), bytes);
  return copy;
}

/// Before any lock, so that those that hold locks never wait for a record.
bool State::take_record(TransactionWork& work) noexcept {
  for (std::size_t i = 0; i < kTransactionRecords; ++i) {
    if ((transaction_records >> i & 1) != 0) continue;
    transaction_records |= 1U << i;
    work.record = i;
    work.serial = ++serial;
    work.lock_word = lock_word::make(fabric.rank(), work.serial);
    work.stage = TransactionStage::hold;
    return true;
  }
  look_again_soon();
  return false;
}

void State::begin_hold(TransactionWork& work, TransactionWrite& write,
                       const TransactionWrite* before) {
  write.begun = true;
  Lookup& at = write.at.emplace(*this, write.first == nullptr ? Side::owner : Side::second,
                                write.key_span());
  write.lock.emplace(*this);
  at.is_change = true;
  at.home = write.home;
  at.vacants = &write.vacants;
  // The chain that was locked last is this one, too?
  const bool is_lent = before != nullptr && before->home == write.home &&
                       before->at->number == homes[write.home].shape.number_of(at.position());
  write.hold = {progress, hold(write, work.lock_word, is_lent)};
}

/// One lock after the other; the search of a key goes on while the next lock is taken.
bool State::hold(TransactionWork& work) noexcept {
  bool all_ended = true;
  for (std::size_t i = 0; i < work.order.size(); ++i) {
    TransactionWrite& write = *work.order[i];
    if (!write.begun) {
      const TransactionWrite* const before = i == 0 ? nullptr : work.order[i - 1];
      if (before != nullptr && !before->lock->is_held()) return false;
      begin_hold(work, write, before);
    }
    const remote::Call<Status>& op = write.hold;
    if (!op.finished()) {
      all_ended = false;
      continue;
    }
    // A chain of the key has been split: the locks are taken anew.
    if (op.status() == Status::conflict)
      return has_moved_keys(work) || has_other_homes(work) ? fail(work, Status::conflict)
                                                           : begin_anew(work);
    if (op.status() != Status::ok) return fail(work, op.status());
    if (write.kind == Kind::insert && write.first == nullptr && write.at->result.found)
      return fail(work, Status::name_taken);
    if (fabric.rank() >= homes[write.home].ranks) return fail(work, Status::not_allowed);
  }
  if (!all_ended) return false;
  if (has_other_homes(work)) return fail(work, Status::conflict);
  for (TransactionWrite* const write : work.order) {
    const Lookup& at = *write->at;
    if (work.chains.empty() || work.chains.back().home != write->home ||
        work.chains.back().main.encoded() != at.main.encoded())
      work.chains.push_back({.home = write->home, .main = at.main, .seen_version = at.version});
    write->chain = work.chains.size() - 1;
  }
  work.stage = TransactionStage::validate;
  return true;
}

/// STO-7. All locks are held: nothing that was read may have changed, or be locked by others.
bool State::validate(TransactionWork& work) noexcept {
  for (; work.posted < work.used_reads; ++work.posted) {
    TransactionRead& one = *work.reads[work.posted];
    one.to_validate = false;
    if (one.is_own) continue;
    const SeenChain& seen = one.seen;
    const auto held = std::find_if(work.chains.begin(), work.chains.end(), [&](const auto& chain) {
      return chain.home == seen.home && chain.main.encoded() == seen.main.encoded();
    });
    if (held != work.chains.end()) {
      if (held->seen_version != seen.version) return fail(work, Status::conflict);
      continue;
    }
    const Refusal refusal =
        fabric
            .post(read(seen.home, region_of(seen.main), seen.main.offset + kVersionAt,
                       one.words.data(), sizeof one.words)
                      .notify(work.done))
            .refusal;
    one.to_validate = refusal == Refusal::none;
    if (one.to_validate) continue;
    if (fault(seen.home) != Status::ok) return fail(work, fault(seen.home));
    if (refusal == Refusal::queue_full || refusal == Refusal::not_connected) return false;
    return fail(work, Status::out_of_range);
  }
  work.posted = 0;
  work.stage = TransactionStage::validated;
  return true;
}

bool State::validated(TransactionWork& work) noexcept {
  if (!work.done.finished()) return false;
  if (work.done.failed()) return fail(work, Status::lost);
  for (std::size_t i = 0; i < work.used_reads; ++i) {
    const TransactionRead& one = *work.reads[i];
    if (one.to_validate && (one.words[0] != one.seen.version || one.words[1] != 0))
      return fail(work, Status::conflict);
  }
  work.stage = work.order.empty() ? TransactionStage::done : TransactionStage::plan;
  return true;
}

}  // namespace store
}  // namespace dunlin
