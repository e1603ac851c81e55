#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "store/state.hpp"

/// A commit that may happen: the new entries and a record at each home, then the mark in the record
/// of one home, which decides, then the slots and the unlocking at each home (STO-8).
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;

// --- which slot, and which block -----------------------------------------------------------------

void Commit::plan() {
  std::vector<TransactionBucket>& buckets = work_->buckets;
  for (TransactionWrite* const write : work_->order) {
    const Lookup& at = write->held->at;
    TransactionChain& chain = work_->chains[write->chain];
    write->slot = at.slot;
    chain.changes = chain.changes || write->puts() || at.present;
    if (at.present || !write->puts()) continue;
    if (chain.vacants_taken < write->vacants.size()) {
      write->slot = write->vacants[chain.vacants_taken++];
      continue;
    }
    if (chain.last_bucket == SIZE_MAX || buckets[chain.last_bucket].used == kSlots) {
      const std::size_t before = std::exchange(chain.last_bucket, buckets.size());
      buckets.push_back({.chain = write->chain,
                         .link = at.last_link,
                         .before = before,
                         .header = {.home = write->home, .size_class = kIndirectClass}});
    }
    write->bucket = chain.last_bucket;
    write->bucket_slot = buckets[chain.last_bucket].used++;
  }
}

/// Whether the block is there. `is_full`: its home has none.
bool Commit::find(WantedBlock& wanted, bool& is_full) noexcept {
  if (!wanted.block)
    wanted.block = state_.find_block(wanted.home, wanted.is_large, wanted.size_class,
                                     wanted.asked_for, is_full);
  return wanted.block.has_value();
}

/// A member that gets a copy and has no room gets none: another attempt finds it so.
Status Commit::no_room_at(Rank home) {
  Status status = Status::no_room;
  for (const TransactionWrite* const write : work_->order) {
    const PlacedSlot& slot = state_.slot_of(write->hash);
    if (!write->is_copy() || write->home != home || slot.incoming != home) continue;
    state_.placement->say({.kind = Decision::Kind::stop,
                           .flag = 1,
                           .slot = static_cast<std::uint16_t>(state_.map().slot_of(write->hash)),
                           .epoch = slot.epoch});
    status = Status::conflict;
  }
  return status;
}

/// Under the locks: only they show which chains grow. `changed`: a header has to be waited for
/// without them (STO-V4).
Protocol<Status> Commit::find_headers() {
  for (;;) {
    bool has_all = true, waits = false;
    for (TransactionBucket& bucket : work_->buckets) {
      WantedBlock& header = bucket.header;
      if (header.block) continue;
      if (const Status why = state_.fault(header.home); why != Status::ok) co_return why;
      const auto known = std::ranges::find_if(work_->headers, [&](const WantedBlock& one) {
        return one.block && one.home == header.home;
      });
      bool is_full = false;
      if (known != work_->headers.end()) {
        header.block = known->block;
        work_->headers.erase(known);
      } else if (!find(header, is_full)) {
        has_all = false;
        if (is_full && state_.room == nullptr) co_return no_room_at(header.home);
        waits = waits || is_full || (work_->used_copies == 0 && state_.small->asks(header.home));
      }
    }
    if (waits) co_return Status::changed;
    if (has_all) co_return Status::ok;
    co_await NextPoll();
  }
}

// --- the batches ---------------------------------------------------------------------------------

void Commit::build() {
  for (const TransactionChain& chain : work_->chains) add_share(chain.home);
  choose_versions();
  for (const bool of_copies : {false, true})  // which have versions and expiries of the others
    for (TransactionWrite* const write : work_->order)
      if (write->puts() && write->is_copy() == of_copies) build_entry(*write);
  build_buckets();
  // A home that is left when this process dies, if there is one.
  work_->decider = !is_at_one_home() && work_->shares[0]->home == fabric().rank() ? 1 : 0;
  for (std::size_t i = 0; i < work_->used_shares; ++i) build_share(*work_->shares[i], i);
}

void Commit::add_share(Rank home) {
  const auto shares = work_->all_shares();
  if (!shares.empty() && shares.back()->home == home) return;
  if (work_->used_shares == work_->shares.size())
    work_->shares.push_back(std::make_unique<TransactionShare>());
  TransactionShare& share = *work_->shares[work_->used_shares++];
  share.home = home;
  share.prepare.clear();
  share.apply.clear();
  share.to_post = {};
  share.is_lost = false;
  share.keys_added = share.bytes_added = 0;
  share.done.reset();
}

TransactionShare& Commit::share_of(Rank home) const noexcept {
  const auto shares = work_->all_shares();
  const auto share = std::ranges::find(shares, home, [](const auto& one) { return one->home; });
  DUNLIN_ASSERT(share != shares.end(), "STO-8: each home of a commit has a share of it");
  return **share;
}

/// No version in a chain is given twice, be it to a key or to the second copy of one.
void Commit::choose_versions() noexcept {
  for (TransactionChain& chain : work_->chains) chain.next_version = chain.seen_version;
  for (const TransactionWrite* const write : work_->order) {
    std::uint64_t& version = work_->chains[write->chain].next_version;
    if (write->held->at.present) version = std::max(version, write->held->at.head.version);
  }
  for (TransactionChain& chain : work_->chains) chain.unlock = {++chain.next_version, 0};
  for (const TransactionWrite* const write : work_->order) {
    if (!write->is_copy()) continue;
    std::uint64_t& version = work_->chains[write->chain].unlock[0];
    version = std::max(version, work_->chains[write->first->chain].next_version);
  }
}

/// By the clock of the write's home; 0: never.
std::uint64_t Commit::expiry_of(const TransactionWrite& write) const noexcept {
  const std::uint64_t now_ns = state_.home_now_ns(write.home);
  if (write.is_copy()) {
    const TransactionWrite& first = *write.first;
    if (first.expiry_ns == 0) return 0;
    return now_ns + std::max<std::uint64_t>(state_.ttl_of(first.home, first.expiry_ns), 1);
  }
  const Lookup& at = write.held->at;
  if (write.ttl_ns == kKeepExpiry) return at.result.found ? at.head.expiry_ns : 0;
  return write.ttl_ns < kLongestTtlNs ? std::max<std::uint64_t>(now_ns + write.ttl_ns, 1) : 0;
}

void Commit::build_entry(TransactionWrite& write) {
  TransactionShare& share = share_of(write.home);
  const remote::SlabBlock& block = *write.entry_block.block;
  write.expiry_ns = expiry_of(write);
  const std::uint64_t incarnation = make_incarnation(fabric().rank(), ++state_.incarnations);
  const Location location{write.entry_block.is_large, block.size_class, block.offset};
  const std::size_t chain = write.is_copy() ? write.first->chain : write.chain;
  EntryHead head{.guard = guard_of(incarnation, EntryState::live),
                 .version = work_->chains[chain].next_version,
                 .expiry_ns = write.expiry_ns,
                 .value_bytes = static_cast<std::uint32_t>(write.value_bytes),
                 .key_bytes = static_cast<std::uint32_t>(write.key_bytes)};
  const std::size_t bytes = entry_bytes(head);
  std::memcpy(write.entry.data(), &head, sizeof head);
  head.checksum = checksum_of(write.entry.data(), head, location);
  std::memcpy(write.entry.data(), &head, sizeof head);
  write.new_slot = {write.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};
  if (write.bucket != SIZE_MAX)
    work_->buckets[write.bucket].image.slots[write.bucket_slot] = write.new_slot;
  remote::SlabPool& pool = state_.pool_of(location);
  share.prepare.push_back(
      dunlin::put(share.home, pool.region(), location.offset, write.entry.data(), bytes));
  share.prepare.push_back(pool.link(block));
}

/// The last ones first: a link is in the image of the bucket before.
void Commit::build_buckets() {
  std::vector<TransactionBucket>& buckets = work_->buckets;
  for (std::size_t i = buckets.size(); i-- > 0;) {
    TransactionBucket& bucket = buckets[i];
    const remote::SlabBlock& block = *bucket.header.block;
    bucket.word = slot_word::make(SlotType::header, 0, {false, block.size_class, block.offset},
                                  sizeof(Bucket));
    if (bucket.before != SIZE_MAX) buckets[bucket.before].image.link = bucket.word;
    TransactionShare& share = share_of(bucket.header.home);
    share.prepare.push_back(dunlin::put(share.home, state_.small->region(), block.offset,
                                        &bucket.image, sizeof(Bucket)));
    share.prepare.push_back(state_.small->link(block));
  }
}

namespace {

/// The last operation tells when all has been placed.
void notify(std::vector<Operation>& batch, Completion& done) noexcept {
  for (Operation& one : batch) one = one.notify(done, Notify::locally);
  if (!batch.empty()) batch.back().when = Notify::remotely;
}

}  // namespace

void Commit::build_share(TransactionShare& share, std::size_t number) {
  share.record.reserve(kTransactionBytes);
  std::memset(share.record.data(), 0, kTransactionBytes);
  TransactionHead head{.lock = work_->lock_word,
                       .homes = static_cast<std::uint32_t>(work_->used_shares)};
  for (std::size_t i = 0; i < work_->used_shares; ++i)
    head.ranks.at(i) = static_cast<std::uint16_t>(work_->shares[i]->home);
  const auto add = [&](const TransactionItem& item) {
    std::memcpy(share.record.data() + sizeof head + head.items++ * sizeof item, &item, sizeof item);
  };
  share.prepared_word = state_word(work_->serial, TransactionState::prepared);
  share.committed_word = state_word(work_->serial, TransactionState::committed);
  const RegionId redo = state_.redo.id();
  const std::uint64_t at = transaction_at(fabric().rank(), work_->record);
  if (!is_at_one_home() && number != work_->decider)
    share.apply.push_back(
        write(share.home, redo, at, &share.committed_word, sizeof share.committed_word));
  for (TransactionWrite* const one : work_->order)
    if (one->home == share.home) add(build_change(*one, share));
  build_unlocking(share);
  std::memcpy(share.record.data(), &head, sizeof head);
  head.checksum = checksum_of(head, share.record.data());
  std::memcpy(share.record.data(), &head, sizeof head);
  const std::size_t bytes = sizeof head + head.items * sizeof(TransactionItem);
  share.prepare.push_back(write(share.home, redo, at + kWordBytes, share.record.data() + kWordBytes,
                                bytes - kWordBytes));
  share.prepare.push_back(write(share.home, redo, at,
                                is_at_one_home() ? &share.committed_word : &share.prepared_word,
                                kWordBytes));
  if (is_at_one_home())
    share.prepare.insert(share.prepare.end(), share.apply.begin(), share.apply.end());
  notify(share.prepare, share.done);
  notify(share.apply, share.done);
}

/// What the home does behind the changes of the keys: links, counters, and the unlocking.
void Commit::build_unlocking(TransactionShare& share) {
  for (const TransactionBucket& bucket : work_->buckets)
    if (bucket.header.home == share.home && bucket.before == SIZE_MAX)
      share.apply.push_back(write(share.home, state_.region_of(bucket.link), bucket.link.offset,
                                  &bucket.word, kWordBytes));
  const RegionId index = state_.index.id();
  if (share.keys_added != 0)
    share.apply.push_back(fetch_add(share.home, index, kKeysAt, share.keys_added, nullptr));
  if (share.bytes_added != 0)
    share.apply.push_back(fetch_add(share.home, index, kValueBytesAt, share.bytes_added, nullptr));
  for (const TransactionChain& chain : work_->chains) {
    if (chain.home != share.home) continue;
    const RegionId region = state_.region_of(chain.main);
    const std::uint64_t main = chain.main.offset;
    share.apply.push_back(
        chain.changes ? write(chain.home, region, main + kVersionAt, chain.unlock.data(), 16)
                      : write(chain.home, region, main + kLockAt, &chain.unlock[1], kWordBytes));
  }
}

/// Of one key: what its home does when the transaction is committed, and what its record says.
TransactionItem Commit::build_change(TransactionWrite& one, TransactionShare& share) {
  const Lookup& held = one.held->at;
  TransactionItem item{.chain = work_->chains[one.chain].main.encoded()};
  if (!one.puts()) one.new_slot = {};
  const auto write_slot = [&] {
    item.at = one.slot.encoded();
    share.apply.push_back(
        write(share.home, state_.region_of(one.slot), one.slot.offset, &one.new_slot, kSlotBytes));
  };
  if (held.present) {
    const Location former = slot_word::location_of(held.slot.word);
    remote::SlabPool& pool = state_.pool_of(former);
    one.new_guard = guard_of(incarnation_of(held.head.guard),
                             one.puts() ? EntryState::moved : EntryState::dead);
    item.former_word = held.slot.word;
    item.former_guard = one.new_guard;
    share.apply.push_back(
        write(share.home, pool.region(), former.offset, &one.new_guard, kWordBytes));
    write_slot();
    share.apply.push_back(pool.free({share.home, former.size_class, former.offset}));
    share.bytes_added -= held.head.value_bytes;
    if (!one.puts()) share.keys_added -= 1;
  } else if (one.puts()) {
    share.keys_added += 1;
    if (one.bucket == SIZE_MAX) {
      write_slot();
    } else if (const TransactionBucket& bucket = work_->buckets[one.bucket];
               bucket.before == SIZE_MAX) {  // one link for all keys of the bucket
      item.at = bucket.link.encoded();
      item.word = bucket.word;
    }
  }
  if (one.puts()) share.bytes_added += one.value_bytes;
  if (one.bucket == SIZE_MAX) item.hash = one.new_slot.hash, item.word = one.new_slot.word;
  return item;
}

// --- posting -------------------------------------------------------------------------------------

/// A home that fails is left out.
bool Commit::Posting::ready() noexcept {
  bool all = true;
  for (const auto& share : commit_.work_->all_shares()) {
    if (!share->is_lost) all = post(*share) && all;
    all = all && share->done.finished();
    share->is_lost = share->is_lost || share->done.failed();
  }
  return all;
}

/// Whether all of it has been posted, or the home has failed.
bool Commit::Posting::post(TransactionShare& share) noexcept {
  if (share.to_post.empty()) return true;
  const Posted posted = commit_.fabric().post(share.to_post);
  share.to_post = share.to_post.subspan(posted.accepted);
  if (posted.all()) return true;
  share.is_lost =
      !remote::is_for_now(posted.refusal) || commit_.state_.fault(share.home) != Status::ok;
  return share.is_lost;
}

Status Commit::Posting::result() const noexcept {
  const auto is_lost = [](const auto& share) { return share->is_lost; };
  return std::ranges::any_of(commit_.work_->all_shares(), is_lost) ? Status::lost : Status::ok;
}

Commit::Posting Commit::post_entries() noexcept {
  is_posted_ = true;
  for (const auto& share : work_->all_shares()) share->to_post = share->prepare;
  return Posting(*this);
}

Commit::PostingMark Commit::post_mark() noexcept {
  TransactionShare& share = *work_->shares[work_->decider];
  const Operation mark =
      write(share.home, state_.redo.id(), transaction_at(fabric().rank(), work_->record),
            &share.committed_word, kWordBytes);
  return remote::post(fabric(), mark, HomeGate{&state_, share.home, &round_trips_});
}

bool Commit::is_decider_gone() const noexcept {
  return state_.is_gone(work_->shares[work_->decider]->home);
}

Commit::Posting Commit::post_slots() noexcept {
  for (std::size_t i = 0; i < work_->used_shares; ++i)
    if (i != work_->decider || work_->used_copies == 0)
      work_->shares[i]->to_post = work_->shares[i]->apply;
  return Posting(*this);
}

Commit::Posting Commit::post_slots_of_decider() noexcept {
  TransactionShare& share = *work_->shares[work_->decider];
  if (work_->used_copies > 0) share.to_post = share.apply;
  return Posting(*this);
}

}  // namespace dunlin::store
