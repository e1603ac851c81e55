#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "store/state.hpp"

/// A commit that may happen: the new entries and a record at each home, then the mark in the record
/// of one home, which decides, then the slots and the unlocking at each home (STO-8).
namespace dunlin::store {

using remote::Status;

// --- which slot, and which block -----------------------------------------------------------------

bool State::plan(TransactionWork& work) noexcept {
  for (TransactionWrite* const write : work.order) {
    const Lookup& held = *write->at;
    TransactionChain& chain = work.chains[write->chain];
    write->slot = held.slot;
    chain.changes = chain.changes || write->puts() || held.present;
    if (held.present || !write->puts()) continue;
    if (chain.vacants_taken < write->vacants.size()) {
      write->slot = write->vacants[chain.vacants_taken++];
      continue;
    }
    if (chain.last_bucket == SIZE_MAX || work.buckets[chain.last_bucket].used == kSlots) {
      const std::size_t before = std::exchange(chain.last_bucket, work.buckets.size());
      work.buckets.push_back({.chain = write->chain,
                              .link = held.last_link,
                              .before = before,
                              .block = {},
                              .image = {}});
    }
    write->bucket = chain.last_bucket;
    write->bucket_slot = work.buckets[chain.last_bucket].used++;
  }
  work.stage = TransactionStage::headers;
  return true;
}

/// A block of the home's memory. None: not yet, or never, if its home is full.
std::optional<remote::SlabBlock> State::find_block(Rank home, bool is_large,
                                                   std::uint32_t size_class, std::size_t& asked_for,
                                                   bool& is_full) noexcept {
  remote::SlabPool& pool = is_large ? *large : *small;
  is_full = asked_for == size_class && pool.full_class(home, size_class);
  asked_for = size_class;
  const auto block = is_full && room == nullptr
                         ? pool.allocate_held(home, pool.bytes_of(size_class))
                         : pool.allocate_class(home, size_class);
  if (!block && !is_full && pool.full_class(home, size_class)) look_again_soon();
  return block;
}

/// Before any lock, so that its homes can make room (STO-V4).
bool State::find_room(TransactionWork& work) noexcept {
  if (rests(work.rest)) return false;
  Status why = Status::ok;
  bool has_all = true, waits = false;
  const auto find = [&](auto& one, Rank home, bool is_large, std::uint32_t size_class) {
    if (one.has_block) return;
    bool is_full = false;
    const auto block = find_block(home, is_large, size_class, one.asked_for, is_full);
    one.has_block = block.has_value();
    if (block) one.block = *block;
    has_all = has_all && one.has_block;
    if (block || !is_full) return;
    waits = true;
    const Status now = room == nullptr
                           ? Status::no_room
                           : ask_for_room(home, is_large, size_class, work.room_since_ns);
    if (now != Status::ok) why = now;
  };
  for (TransactionWrite* const write : work.order) {
    if (fault(write->home) != Status::ok) return fail(work, fault(write->home));
    if (!write->puts()) continue;
    const std::size_t bytes = entry_bytes(write->key_bytes, write->value_bytes);
    write->is_large = bytes > kMostSmallBytes;
    find(*write, write->home, write->is_large,
         (write->is_large ? *large : *small).class_of(bytes).value_or(0));
  }
  for (TransactionHeader& header : work.headers) find(header, header.home, false, kIndirectClass);
  if (why != Status::ok) return fail(work, why);
  if (!has_all && waits) begin_rest(work.rest);
  if (!has_all) return false;
  work.stage = TransactionStage::record;
  return true;
}

/// Under the locks: only they show which chains grow.
bool State::find_headers(TransactionWork& work) noexcept {
  bool has_all = true, waits = false;
  for (TransactionBucket& bucket : work.buckets) {
    if (bucket.has_block) continue;
    const Rank home = work.chains[bucket.chain].home;
    if (fault(home) != Status::ok) return fail(work, fault(home));
    const auto known = std::find_if(work.headers.begin(), work.headers.end(), [&](const auto& one) {
      return one.has_block && one.home == home;
    });
    bool is_full = false;
    const bool is_known = known != work.headers.end();
    const auto block = is_known
                           ? std::optional(known->block)
                           : find_block(home, false, kIndirectClass, bucket.asked_for, is_full);
    if (is_known) work.headers.erase(known);
    bucket.has_block = block.has_value();
    if (block) bucket.block = *block;
    has_all = has_all && bucket.has_block;
    if (!block && is_full && room == nullptr) return fail(work, Status::no_room);
    waits = waits || (!block && (is_full || (!has_copies() && small->asks(home))));
  }
  if (waits) return begin_anew(work);
  if (!has_all) return false;
  give_headers_back(work);  // a chain has got shorter meanwhile
  build(work);
  work.stage = TransactionStage::prepare;
  return true;
}

/// STO-V4. Gives the locks back, and waits for the headers that are missing without them; what the
/// transaction has read is validated once they are held again.
bool State::begin_anew(TransactionWork& work) noexcept {
  for (const TransactionBucket& bucket : work.buckets)
    work.headers.push_back({.home = work.chains[bucket.chain].home,
                            .has_block = bucket.has_block,
                            .block = bucket.block});
  give_locks_back(work);
  release_record(work);
  for (TransactionWrite* const write : work.order) {
    write->begun = false;
    write->bucket = SIZE_MAX;
  }
  work.buckets.clear();
  work.chains.clear();
  work.stage = TransactionStage::room;
  return true;
}

// --- the batches ---------------------------------------------------------------------------------

void State::build(TransactionWork& work) noexcept {
  for (TransactionChain& chain : work.chains) {
    std::uint64_t version = chain.seen_version;
    for (const TransactionWrite* const write : work.order)
      if (&work.chains[write->chain] == &chain && write->at->present)
        version = std::max(version, write->at->head.version);
    chain.next_version = version + 1;
    chain.unlock = {chain.next_version, 0};
    share_of(work, chain.home);
  }
  for (const bool of_copies : {false, true})  // which have versions and expiries of the others
    for (TransactionWrite* const write : work.order) {
      if ((write->first != nullptr) != of_copies) continue;
      if (of_copies) {  // no version in a chain is given twice
        std::uint64_t& version = work.chains[write->chain].unlock[0];
        version = std::max(version, work.chains[write->first->chain].next_version);
      }
      if (write->puts()) build_entry(work, *write, share_of(work, write->home));
    }
  // The last ones first: a link is in the image of the bucket before.
  for (std::size_t i = work.buckets.size(); i-- > 0;) {
    TransactionBucket& bucket = work.buckets[i];
    TransactionShare& share = share_of(work, work.chains[bucket.chain].home);
    bucket.word = slot_word::make(
        SlotType::header, 0, {false, bucket.block.size_class, bucket.block.offset}, sizeof(Bucket));
    if (bucket.before != SIZE_MAX) work.buckets[bucket.before].image.link = bucket.word;
    share.prepare.push_back(dunlin::put(share.home, small->region(), bucket.block.offset,
                                        &bucket.image, sizeof(Bucket)));
    share.prepare.push_back(small->link(bucket.block));
  }
  // A home that is left when this process dies, if there is one.
  work.decider = work.used_shares > 1 && work.shares[0]->home == fabric.rank() ? 1 : 0;
  for (std::size_t i = 0; i < work.used_shares; ++i) build_share(work, *work.shares[i], i);
}

TransactionShare& State::share_of(TransactionWork& work, Rank home) {
  for (std::size_t i = 0; i < work.used_shares; ++i)
    if (work.shares[i]->home == home) return *work.shares[i];
  if (work.used_shares == work.shares.size())
    work.shares.push_back(std::make_unique<TransactionShare>());
  TransactionShare& share = *work.shares[work.used_shares++];
  share.home = home;
  share.prepare.clear();
  share.apply.clear();
  share.posted = 0;
  share.is_lost = false;
  share.keys_added = share.bytes_added = 0;
  share.done.reset();
  return share;
}

void State::build_entry(TransactionWork& work, TransactionWrite& write, TransactionShare& share) {
  const Lookup& held = *write.at;
  const TransactionWrite& first = write.first == nullptr ? write : *write.first;
  std::uint64_t& expiry = write.expiry_ns = 0;
  if (write.first != nullptr) {
    if (first.expiry_ns != 0)
      expiry =
          home_now_ns(write.home) + std::max<std::uint64_t>(ttl_of(first.home, first.expiry_ns), 1);
  } else if (write.ttl_ns == kKeepExpiry) {
    expiry = held.result.found ? held.head.expiry_ns : 0;
  } else if (write.ttl_ns < kLongestTtlNs) {
    expiry = std::max<std::uint64_t>(home_now_ns(write.home) + write.ttl_ns, 1);
  }
  const std::uint64_t incarnation = make_incarnation(fabric.rank(), ++incarnations);
  const Location location{write.is_large, write.block.size_class, write.block.offset};
  EntryHead head{.guard = guard_of(incarnation, EntryState::live),
                 .version = work.chains[first.chain].next_version,
                 .expiry_ns = expiry,
                 .value_bytes = static_cast<std::uint32_t>(write.value_bytes),
                 .key_bytes = static_cast<std::uint32_t>(write.key_bytes)};
  const std::size_t bytes = entry_bytes(head);
  std::memcpy(write.entry.data(), &head, sizeof head);
  head.checksum = checksum_of(write.entry.data(), head, location);
  std::memcpy(write.entry.data(), &head, sizeof head);
  write.new_slot = {write.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};
  if (write.bucket != SIZE_MAX)
    work.buckets[write.bucket].image.slots[write.bucket_slot] = write.new_slot;
  remote::SlabPool& pool = pool_of(location);
  share.prepare.push_back(
      dunlin::put(share.home, pool.region(), location.offset, write.entry.data(), bytes));
  share.prepare.push_back(pool.link(write.block));
}

void State::build_share(TransactionWork& work, TransactionShare& share, std::size_t number) {
  const bool is_alone = work.used_shares == 1;
  share.record.reserve(kTransactionBytes);
  std::memset(share.record.data(), 0, kTransactionBytes);
  TransactionHead head{.lock = work.lock_word,
                       .homes = static_cast<std::uint32_t>(work.used_shares)};
  for (std::size_t i = 0; i < work.used_shares; ++i)
    head.ranks.at(i) = static_cast<std::uint16_t>(work.shares[i]->home);
  const auto add = [&](const TransactionItem& item) {
    std::memcpy(share.record.data() + sizeof head + head.items++ * sizeof item, &item, sizeof item);
  };
  share.prepared_word = state_word(work.serial, TransactionState::prepared);
  share.committed_word = state_word(work.serial, TransactionState::committed);
  const std::uint64_t at = transaction_at(fabric.rank(), work.record);
  if (!is_alone && number != work.decider)
    share.apply.push_back(
        write(share.home, redo.id(), at, &share.committed_word, sizeof share.committed_word));
  for (TransactionWrite* const one : work.order)
    if (one->home == share.home) add(build_change(work, *one, share));
  for (TransactionBucket& bucket : work.buckets) {
    const TransactionChain& chain = work.chains[bucket.chain];
    if (chain.home != share.home || bucket.before != SIZE_MAX) continue;
    share.apply.push_back(
        write(share.home, region_of(bucket.link), bucket.link.offset, &bucket.word, kWordBytes));
  }
  if (share.keys_added != 0)
    share.apply.push_back(fetch_add(share.home, index.id(), kKeysAt, share.keys_added, nullptr));
  if (share.bytes_added != 0)
    share.apply.push_back(
        fetch_add(share.home, index.id(), kValueBytesAt, share.bytes_added, nullptr));
  for (TransactionChain& chain : work.chains) {
    if (chain.home != share.home) continue;
    const RegionId region = region_of(chain.main);
    const std::uint64_t main = chain.main.offset;
    share.apply.push_back(
        chain.changes ? write(chain.home, region, main + kVersionAt, chain.unlock.data(), 16)
                      : write(chain.home, region, main + kLockAt, &chain.unlock[1], kWordBytes));
  }
  std::memcpy(share.record.data(), &head, sizeof head);
  head.checksum = checksum_of(head, share.record.data());
  std::memcpy(share.record.data(), &head, sizeof head);
  share.record_bytes = sizeof head + head.items * sizeof(TransactionItem);
  share.prepare.push_back(write(share.home, redo.id(), at + kWordBytes,
                                share.record.data() + kWordBytes, share.record_bytes - kWordBytes));
  share.prepare.push_back(write(share.home, redo.id(), at,
                                is_alone ? &share.committed_word : &share.prepared_word,
                                kWordBytes));
  if (is_alone) {
    share.prepare.insert(share.prepare.end(), share.apply.begin(), share.apply.end());
    share.apply.clear();
  }
}

/// Of one key: what its home does when the transaction is committed, and what its record says.
TransactionItem State::build_change(TransactionWork& work, TransactionWrite& one,
                                    TransactionShare& share) {
  const Lookup& held = *one.at;
  TransactionItem item{.chain = work.chains[one.chain].main.encoded()};
  if (!one.puts()) one.new_slot = {};
  if (held.present) {
    const Location former = slot_word::location_of(held.slot.word);
    remote::SlabPool& pool = pool_of(former);
    one.new_guard = guard_of(incarnation_of(held.head.guard),
                             one.puts() ? EntryState::moved : EntryState::dead);
    item.at = one.slot.encoded();
    item.former_word = held.slot.word;
    item.former_guard = one.new_guard;
    share.apply.push_back(
        write(share.home, pool.region(), former.offset, &one.new_guard, kWordBytes));
    share.apply.push_back(
        write(share.home, region_of(one.slot), one.slot.offset, &one.new_slot, kSlotBytes));
    share.apply.push_back(pool.free({share.home, former.size_class, former.offset}));
    share.bytes_added -= held.head.value_bytes;
    if (!one.puts()) share.keys_added -= 1;
  } else if (one.puts() && one.bucket == SIZE_MAX) {
    item.at = one.slot.encoded();
    share.apply.push_back(
        write(share.home, region_of(one.slot), one.slot.offset, &one.new_slot, kSlotBytes));
    share.keys_added += 1;
  } else if (one.puts()) {
    const TransactionBucket& bucket = work.buckets[one.bucket];
    share.keys_added += 1;
    if (bucket.before == SIZE_MAX) {  // one link for all keys of the bucket
      item.at = bucket.link.encoded();
      item.word = bucket.word;
    }
  }
  if (one.puts()) share.bytes_added += one.value_bytes;
  if (one.bucket == SIZE_MAX) item.hash = one.new_slot.hash, item.word = one.new_slot.word;
  return item;
}

// --- posting -------------------------------------------------------------------------------------

/// What is left of each home's batch. A home that fails is left out.
bool State::post_shares(TransactionWork& work) noexcept {
  const bool prepares = work.stage == TransactionStage::prepare;
  const bool decider_is_last = work.stage == TransactionStage::apply && has_copies();
  bool all = true;
  if (!prepares || work.used_shares == 1)  // the batches unlock the chains
    for (TransactionWrite* const write : work.order) write->lock->pass_on();
  for (std::size_t i = 0; i < work.used_shares; ++i) {
    TransactionShare& share = *work.shares[i];
    std::vector<Operation>& batch = prepares ? share.prepare : share.apply;
    if (share.is_lost || share.posted == batch.size()) continue;
    if (decider_is_last && i == work.decider) continue;
    if (share.posted == 0)
      for (std::size_t j = 0; j < batch.size(); ++j)
        batch[j] =
            batch[j].notify(share.done, j + 1 == batch.size() ? Notify::remotely : Notify::locally);
    const Posted posted = fabric.post(std::span(batch).subspan(share.posted));
    share.posted += posted.accepted;
    if (posted.all()) continue;
    const bool for_ever =
        posted.refusal != Refusal::queue_full && posted.refusal != Refusal::not_connected;
    share.is_lost = for_ever || fault(share.home) != Status::ok;
    all = all && share.is_lost;
  }
  if (!all) return false;
  work.stage = prepares          ? TransactionStage::prepared
               : decider_is_last ? TransactionStage::applied_elsewhere
                                 : TransactionStage::applied;
  return true;
}

/// Whether all that was posted has ended; notes which homes have failed.
bool State::shares_ended(TransactionWork& work) noexcept {
  bool all = true;
  for (std::size_t i = 0; i < work.used_shares; ++i) {
    TransactionShare& share = *work.shares[i];
    all = all && share.done.finished();
    share.is_lost = share.is_lost || share.done.failed();
  }
  return all;
}

bool State::prepared(TransactionWork& work) noexcept {
  if (!shares_ended(work)) return false;
  const bool is_lost = std::any_of(
      work.shares.begin(), work.shares.begin() + static_cast<std::ptrdiff_t>(work.used_shares),
      [](const auto& share) { return share->is_lost; });
  for (TransactionWrite* const one : work.order) one->is_linked = one->has_block;
  for (TransactionBucket& bucket : work.buckets) bucket.is_linked = true;
  if (work.used_shares == 1) {
    if (is_lost) work.end_status = Status::lost;
    return applied(work);
  }
  if (is_lost) return fail(work, Status::lost);
  for (std::size_t i = 0; i < work.used_shares; ++i) work.shares[i]->posted = 0;
  work.done.reset();
  work.stage = TransactionStage::decide;
  return true;
}

/// From the moment on at which the mark lands, the transaction has happened.
bool State::decide(TransactionWork& work) noexcept {
  TransactionShare& share = *work.shares[work.decider];
  const Refusal refusal =
      fabric
          .post(write(share.home, redo.id(), transaction_at(fabric.rank(), work.record),
                      &share.committed_word, kWordBytes)
                    .notify(work.done, Notify::remotely))
          .refusal;
  if (refusal == Refusal::none) {
    work.stage = TransactionStage::decided;
    return true;
  }
  if (fault(share.home) == Status::ok) return false;
  work.stage = TransactionStage::in_doubt;
  return true;
}

bool State::decided(TransactionWork& work) noexcept {
  if (!work.done.finished()) return false;
  work.stage = work.done.failed() ? TransactionStage::in_doubt : TransactionStage::apply;
  return true;
}

/// The mark may have landed. If it is the other member that has failed, no other member has seen
/// it; if the members agree that it is this one, they look themselves.
bool State::in_doubt(TransactionWork& work) noexcept {
  if (!progress.is_gone(work.shares[work.decider]->home)) return false;
  return fail(work, Status::lost);
}

/// STO-C5. All homes have the mark now, so if this process and the first of them die, the others
/// still know what readers of that one may have seen.
bool State::applied_elsewhere(TransactionWork& work) noexcept {
  if (!shares_ended(work)) return false;
  work.stage = TransactionStage::apply_at_decider;
  return true;
}

bool State::applied(TransactionWork& work) noexcept {
  if (!shares_ended(work)) return false;
  if (has_copies() && has_lost_a_key(work)) work.end_status = Status::lost;
  for (const TransactionWrite* const one : work.order) {
    if (one->first != nullptr) continue;
    if (one->new_slot.word != 0 && one->puts()) cache.insert(one->hash, one->new_slot.word);
    if (!one->puts()) cache.erase(one->hash);
  }
  release_record(work);
  work.stage = TransactionStage::done;
  return true;
}

}  // namespace dunlin::store
