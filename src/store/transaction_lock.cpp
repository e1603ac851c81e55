#include <algorithm>
#include <cstring>
#include <utility>

#include "store/state.hpp"

/// A commit up to the point at which it may happen: it has room, holds the locks of all chains that
/// it changes, and what it has read is as it was.
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;
using remote::Until;

Commit::Commit(State& state, std::shared_ptr<TransactionWork> work)
    : state_(state), work_(std::move(work)) {
  work_->used_copies = work_->used_shares = 0;
  work_->order.clear();
  work_->chains.clear();
  work_->buckets.clear();
  work_->headers.clear();
  work_->record = TransactionWork::kNoRecord;
}

remote::Progress& Commit::its_progress() const noexcept { return state_.progress; }
Fabric& Commit::fabric() const noexcept { return state_.fabric; }

/// STO-V4: room is found before the locks are taken, and what has been read is validated under
/// them. `changed`: they are given back, and all is done anew.
Protocol<Status> Commit::get_ready() {
  Status status = co_await await_gets();
  if (status == Status::ok) status = co_await await_owners();
  if (status != Status::ok) co_return status;
  order_keys();
  do {
    if (!changes_nothing()) {
      status = co_await find_room();
      if (status == Status::ok) status = co_await take_record();
      if (status == Status::ok) status = co_await lock_chains();
    }
    // STO-P8: under the locks.
    if (status == Status::ok && has_moved_keys()) co_return Status::conflict;
    if (status == Status::ok) status = co_await validate();
    if (status == Status::ok) {
      plan();
      status = co_await find_headers();
    }
    if (status == Status::changed) begin_anew();
  } while (status == Status::changed);
  co_return status;
}

Protocol<Status> Commit::await_gets() {
  if (work_->beyond != Status::ok) co_return work_->beyond;
  for (const auto& read : work_->all_reads()) {
    const StoreOperation& operation = read->operation;
    co_await Until([&operation] { return operation.finished(); });
    if (operation.status() != Status::ok) co_return operation.status();
  }
  co_return Status::ok;
}

/// Without locks, for which the opening of a slot waits.
Protocol<Status> Commit::await_owners() {
  for (std::size_t i = 0; i < work_->used_writes; ++i)
    for (;;) {
      const std::uint64_t word = state_.routes.of(work_->writes[i]->hash);
      if (route::is_open(word)) break;
      if (const Status why = state_.why_closed(word); why != Status::busy) co_return why;
      co_await rest_.next(fabric());
    }
  co_return Status::ok;
}

/// The order of (home, main header) at all members, so that no members wait in a circle.
void Commit::order_keys() {
  for (std::size_t i = 0; i < work_->used_writes; ++i) {
    TransactionWrite& write = *work_->writes[i];
    write.route = state_.routes.of(write.hash);
    write.home = route::owner(write.route);
    write.copies.fill(nullptr);
    add_to_order(write);
    if (!route::has_copies(write.route)) continue;
    const PlacedSlot& slot = state_.slot_of(write.hash);
    std::size_t copies = 0;
    for (const Rank rank : {slot.backups[0], slot.backups[1], slot.incoming}) {
      if (rank == kNobody) continue;
      TransactionWrite& copy = copy_of(write);
      copy.home = rank;
      write.copies.at(copies++) = &copy;
      add_to_order(copy);
    }
  }
  std::ranges::sort(work_->order, {}, [](const TransactionWrite* write) {
    return std::pair(write->home, IndexShape::position_of(write->hash));
  });
}

void Commit::add_to_order(TransactionWrite& write) {
  const std::size_t bytes = entry_bytes(write.key_bytes, write.value_bytes);
  const bool is_large = bytes > kMostSmallBytes;
  const remote::SlabPool& pool = is_large ? *state_.large : *state_.small;
  write.entry_block = {
      .home = write.home, .is_large = is_large, .size_class = pool.class_of(bytes).value_or(0)};
  write.bucket = SIZE_MAX;
  work_->order.push_back(&write);
}

/// Makes the same change for another member.
TransactionWrite& Commit::copy_of(TransactionWrite& write) {
  if (work_->used_copies == work_->copies.size())
    work_->copies.push_back(std::make_unique<TransactionWrite>());
  TransactionWrite& copy = *work_->copies[work_->used_copies++];
  copy.first = &write;
  copy.kind = write.kind;
  copy.hash = write.hash;
  copy.route = write.route;
  copy.key_bytes = write.key_bytes;
  copy.key = write.key;
  copy.value_bytes = write.value_bytes;
  const std::size_t bytes = entry_bytes(write.key_bytes, write.value_bytes);
  copy.entry.reserve(bytes);
  std::memcpy(copy.entry.data(), write.entry.data(), bytes);
  return copy;
}

/// Allocates the blocks of entries, and of headers for which it has given its locks back.
Protocol<Status> Commit::find_room() {
  for (;;) {
    bool has_all = true, waits = false;
    Status why = Status::ok;
    const auto look_for = [&](WantedBlock& wanted) {
      bool is_full = false;
      if (find(wanted, is_full)) return;
      has_all = false;
      waits = waits || is_full;
      if (!is_full) return;
      const Status now = state_.room == nullptr
                             ? Status::no_room
                             : state_.ask_for_room(wanted.home, wanted.is_large, wanted.size_class,
                                                   room_since_ns_);
      if (now != Status::ok) why = now == Status::no_room ? no_room_at(wanted.home) : now;
    };
    for (TransactionWrite* const write : work_->order) {
      if (const Status fault = state_.fault(write->home); fault != Status::ok) co_return fault;
      if (write->puts()) look_for(write->entry_block);
    }
    for (WantedBlock& header : work_->headers) look_for(header);
    if (why != Status::ok || has_all) co_return why;
    if (waits)
      co_await rest_.next(fabric());
    else
      co_await NextPoll();
  }
}

/// Before any lock, so that a commit that holds locks never waits for a record.
Protocol<Status> Commit::take_record() {
  std::optional<std::size_t> record = state_.transactions.take_record();
  while (!record) {
    state_.look_again_soon();
    co_await NextPoll();
    record = state_.transactions.take_record();
  }
  work_->record = *record;
  work_->serial = ++state_.serial;
  work_->lock_word = lock_word::make(fabric().rank(), work_->serial);
  co_return Status::ok;
}

/// Locks the chains of the keys to be changed, one after the other, and finds the keys there; the
/// search of a key goes on while the next lock is taken.
Protocol<Status> Commit::lock_chains() {
  const TransactionWrite* before = nullptr;
  for (TransactionWrite* const write : work_->order) {
    begin_hold(*write, before);
    co_await Until(
        [&] { return write->held->lock.is_held() || hold_status() != Status::under_way; });
    if (const Status status = hold_status(); status != Status::under_way && status != Status::ok)
      co_return status;
    before = write;
  }
  co_await Until([&] { return hold_status() != Status::under_way; });
  Status status = hold_status();
  if (status == Status::ok) note_chains();
  co_return status;
}

void Commit::begin_hold(TransactionWrite& write, const TransactionWrite* before) {
  HeldKey& held =
      write.held.emplace(state_, write.is_copy() ? Side::copy : Side::owner, write.key_span());
  held.at.is_change = true;
  held.at.home = write.home;
  held.at.vacants = &write.vacants;
  // The chain that was locked last is this one, too?
  const bool is_lent =
      before != nullptr && before->home == write.home &&
      before->held->at.number == state_.homes[write.home].shape.number_of(held.at.position());
  held.hold = {state_.progress, state_.hold(write, work_->lock_word, is_lent)};
}

/// Returns how taking the locks that were begun stands. `changed`: a key's chain has been split,
/// and the locks are to be taken anew.
Status Commit::hold_status() const noexcept {
  Status status = Status::ok;
  for (const TransactionWrite* const write : work_->order) {
    if (!write->held) break;
    const Status hold = write->held->hold.status();
    if (hold == Status::under_way) {
      status = hold;
      continue;
    }
    if (hold == Status::conflict) return has_moved_keys() ? Status::conflict : Status::changed;
    if (hold != Status::ok) return hold;
    if (write->kind == Kind::insert && !write->is_copy() && write->held->at.result.found)
      return Status::name_taken;
    if (fabric().rank() >= state_.homes[write->home].ranks) return Status::not_allowed;
  }
  return status;
}

void Commit::note_chains() {
  for (TransactionWrite* const write : work_->order) {
    const Lookup& at = write->held->at;
    std::vector<TransactionChain>& chains = work_->chains;
    if (chains.empty() || chains.back().home != write->home ||
        chains.back().main.encoded() != at.main.encoded())
      chains.push_back({.home = write->home, .main = at.main, .seen_version = at.version});
    write->chain = chains.size() - 1;
  }
}

bool Commit::Validation::ready() noexcept {
  for (; posted_ < commit_.work_->used_reads; ++posted_) {
    TransactionRead& one = *commit_.work_->reads[posted_];
    one.to_validate = false;
    if (one.is_own) continue;
    if (const TransactionChain* const held = locked_chain(one.seen); held != nullptr) {
      if (held->seen_version == one.seen.version) continue;
      status_ = Status::conflict;
      return true;
    }
    const Refusal refusal = post(one);
    one.to_validate = refusal == Refusal::none;
    if (one.to_validate) continue;
    status_ = commit_.state_.fault(one.seen.home);
    if (status_ == Status::ok && remote::is_for_now(refusal)) return false;
    if (status_ == Status::ok) status_ = Status::out_of_range;
    return true;
  }
  return done_.finished();
}

Status Commit::Validation::result() const noexcept {
  if (status_ != Status::ok) return status_;
  if (done_.failed()) return Status::lost;
  const auto has_changed = [](const auto& one) {
    return one->to_validate && (one->words[0] != one->seen.version || one->words[1] != 0);
  };
  return std::ranges::any_of(commit_.work_->all_reads(), has_changed) ? Status::conflict
                                                                      : Status::ok;
}

const TransactionChain* Commit::Validation::locked_chain(const SeenChain& seen) const noexcept {
  for (const TransactionChain& chain : commit_.work_->chains)
    if (chain.home == seen.home && chain.main.encoded() == seen.main.encoded()) return &chain;
  return nullptr;
}

Refusal Commit::Validation::post(TransactionRead& one) noexcept {
  const Place& main = one.seen.main;
  return commit_.fabric()
      .post(read(one.seen.home, commit_.state_.region_of(main), main.offset + kVersionAt,
                 one.words.data(), sizeof one.words)
                .notify(done_))
      .refusal;
}

/// STO-7. All locks are held: nothing that was read may have changed, or be locked by others.
Protocol<Status> Commit::validate() {
  Validation validation(*this);
  const Status status = co_await validation;
  co_return status;
}

/// Gives the locks back, and takes the headers that there are along; what the transaction has read
/// is validated once the locks are held again.
void Commit::begin_anew() noexcept {
  for (const TransactionBucket& bucket : work_->buckets) work_->headers.push_back(bucket.header);
  work_->buckets.clear();
  give_locks_back();
  release_record();
  for (TransactionWrite* const write : work_->order) write->bucket = SIZE_MAX;
  work_->chains.clear();
}

}  // namespace dunlin::store
