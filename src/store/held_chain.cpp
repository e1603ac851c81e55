#include "store/held_chain.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "store/state.hpp"

/// A chain's lock, and the batch that changes and unlocks it. The batch's order lets readers see a
/// key before or after the change, and lets the home repair a change that a death has cut off.
namespace dunlin::store {

using remote::Status;

/// The last operation tells when all has been placed.
void ChainBatch::add(const Operation& operation) noexcept {
  if (steps > 0) operations[steps - 1].when = Notify::locally;
  operations[steps++] = operation.notify(done, Notify::remotely);
}

remote::Progress& HeldChain::its_progress() const noexcept { return state_.progress; }

ChainBatch& HeldChain::batch() {
  if (batch_ == nullptr) batch_ = state_.leftovers.take_batch();
  return *batch_;
}

// --- the lock ------------------------------------------------------------------------------------

Operation HeldChain::take(const Lookup& at, std::uint64_t word, std::uint64_t& before) noexcept {
  DUNLIN_ASSERT(lock_ == Lock::none, "STO-1: a call takes one lock of a chain at a time");
  if (home_ != at.home) cancel_blocks();
  home_ = at.home;
  main_ = at.main;
  word_ = word;
  lock_ = Lock::taking;
  return compare_swap(home_, state_.region_of(main_), main_.offset + kLockAt, 0, word, &before);
}

void HeldChain::take_over(HeldChain& other) noexcept {
  home_ = other.home_;
  main_ = other.main_;
  word_ = other.word_;
  lock_ = std::exchange(other.lock_, Lock::none);
  must_complete_ = std::exchange(other.must_complete_, false);
  copied_to_ = other.copied_to_;
  copies_ = std::exchange(other.copies_, 0);
  entry_is_large_ = other.entry_is_large_;
  entry_block_ = std::exchange(other.entry_block_, std::nullopt);
  bucket_block_ = std::exchange(other.bucket_block_, std::nullopt);
  missing_ = other.missing_;
  room_since_ns_ = other.room_since_ns_;
  asked_for_ = other.asked_for_;
  batch_ = std::move(other.batch_);
}

void HeldChain::use_lock(const Lookup& at, std::uint64_t word, bool is_lent) noexcept {
  if (home_ != at.home) cancel_blocks();
  home_ = at.home;
  main_ = at.main;
  word_ = word;
  lock_ = is_lent ? Lock::lent : Lock::held;
}

void HeldChain::unlocked() noexcept {
  lock_ = Lock::none;
  must_complete_ = false;
  copies_ = 0;
  release_record();
  batch_->steps = batch_->posted = 0;
}

void HeldChain::release_record() noexcept {
  if (batch_ != nullptr) state_.release_record(*batch_);
}

void HeldChain::drop_batch() noexcept {
  DUNLIN_ASSERT(batch_->posted == 0, "STO-4: a batch of which the home has a part is completed");
  release_record();
  batch_->steps = 0;
  copies_ = 0;
  must_complete_ = false;
}

void HeldChain::must_complete() noexcept {
  must_complete_ = true;
  entry_block_.reset();  // which the batch links
  bucket_block_.reset();
}

void HeldChain::copied(Rank to) noexcept {
  if (copies_ < copied_to_.size()) copied_to_[copies_++] = to;
  must_complete_ = true;
}

bool HeldChain::is_copied_to(Rank rank) const noexcept {
  return std::ranges::find(copies(), rank) != copies().end();
}

void HeldChain::begin_anew() noexcept {
  if (lock_ != Lock::none && state_.fault(home_) == Status::ok)
    state_.leftovers.unlock(home_, main_, word_);
  lock_ = Lock::none;
  must_complete_ = false;
  copies_ = 0;
  cancel_blocks();
  asked_for_ = UINT32_MAX;
  room_since_ns_ = 0;
  release_record();
  state_.fabric.abandon(batch_->done);
  batch_->steps = batch_->posted = 0;
}

void HeldChain::give_up() noexcept {
  const Lock lock = std::exchange(lock_, Lock::none);
  const bool is_changing =
      lock != Lock::none && batch_ != nullptr && (must_complete_ || batch_->posted > 0);
  const bool is_there = lock != Lock::none && state_.fault(home_) == Status::ok;
  if (is_changing && is_there) {
    must_complete();
    if (lock == Lock::lent) batch_->unlock[1] = 0;
    state_.leftovers.complete(std::move(batch_));
  } else if (is_there && lock != Lock::lent) {
    state_.leftovers.unlock(home_, main_, word_);
  }
  cancel_blocks();
  must_complete_ = false;
  if (batch_ == nullptr) return;
  state_.fabric.abandon(batch_->done);
  state_.leftovers.give_back(std::move(batch_));
}

bool HeldChain::Commit::ready() noexcept {
  ChainBatch& batch = *chain_.batch_;
  State& state = chain_.state_;
  if (batch.posted < batch.steps) {
    const Posted posted = state.fabric.post(batch.rest());
    if (batch.posted == 0 && posted.accepted > 0) {
      ++round_trips_;
      chain_.must_complete();
    }
    batch.posted += posted.accepted;
    if (posted.all()) return batch.done.finished();
    status_ = state.fault(chain_.home_);
    if (status_ == Status::ok && !remote::is_for_now(posted.refusal))
      status_ = Status::out_of_range;
    return status_ != Status::ok;
  }
  return batch.done.finished();
}

Status HeldChain::Commit::result() noexcept {
  ChainBatch& batch = *chain_.batch_;
  if (status_ != Status::ok) return status_;
  if (batch.done.failed()) {
    batch.done.reset();
    return Status::lost;
  }
  chain_.unlocked();
  return Status::ok;
}

// --- blocks --------------------------------------------------------------------------------------

std::optional<remote::SlabBlock> HeldChain::block_for(bool is_large,
                                                      std::uint32_t size_class) noexcept {
  bool is_full = false;
  auto block = state_.find_block(home_, is_large, size_class, asked_for_, is_full);
  if (!block)
    missing_ = {.is_large = is_large, .size_class = size_class, .is_never_there = is_full};
  return block;
}

Status HeldChain::find_blocks(std::size_t bytes, bool wants_bucket) noexcept {
  const bool is_large = bytes > kMostSmallBytes;
  remote::SlabPool& small = *state_.small;
  remote::SlabPool& pool = is_large ? *state_.large : small;
  // After a wait for room, an update may have another value.
  const bool fits = entry_block_ && entry_is_large_ == is_large &&
                    pool.bytes_of(entry_block_->size_class) >= bytes;
  if (!fits) {
    if (entry_block_) (entry_is_large_ ? *state_.large : small).cancel(*entry_block_);
    entry_is_large_ = is_large;
    entry_block_ = block_for(is_large, pool.class_of(bytes).value_or(0));
    if (!entry_block_) return missing_.is_never_there ? Status::no_room : Status::under_way;
  }
  if (bucket_block_ && !wants_bucket) {
    small.cancel(*bucket_block_);
    bucket_block_.reset();
  }
  if (wants_bucket && !bucket_block_) {
    bucket_block_ = block_for(false, kIndirectClass);
    if (!bucket_block_) return missing_.is_never_there ? Status::no_room : Status::under_way;
  }
  return Status::ok;
}

void HeldChain::take_block(const remote::SlabBlock& block) noexcept {
  if (missing_.size_class == kIndirectClass && !missing_.is_large) {
    bucket_block_ = block;
  } else {
    entry_block_ = block;
    entry_is_large_ = missing_.is_large;
  }
}

void HeldChain::cancel_blocks() noexcept {
  if (entry_block_) (entry_is_large_ ? *state_.large : *state_.small).cancel(*entry_block_);
  if (bucket_block_) state_.small->cancel(*bucket_block_);
  entry_block_.reset();
  bucket_block_.reset();
}

// --- the batches ---------------------------------------------------------------------------------

bool HeldChain::take_record() noexcept {
  State::Home& home = state_.homes[home_];
  const std::uint32_t records = ~home.records & ((1U << kRedoRecords) - 1);
  if (records == 0 || state_.fabric.rank() >= home.ranks) return false;
  batch().home = home_;
  batch_->redo_record = static_cast<std::size_t>(std::countr_zero(records));
  home.records |= 1U << batch_->redo_record;
  return true;
}

void HeldChain::fill_head(std::uint64_t incarnation, const Location& location) noexcept {
  std::byte* const entry = batch_->entry.data();
  EntryHead head = head_of(entry);
  head.guard = guard_of(incarnation, EntryState::live);
  head.checksum = checksum_of(entry, head, location);
  std::memcpy(entry, &head, sizeof head);
}

/// The redo record first, so that an entry that is half written can be completed by its home.
void HeldChain::build_in_place(const Lookup& at, std::size_t bytes) noexcept {
  ChainBatch& batch = *batch_;
  const Location location = slot_word::location_of(at.slot.word);
  const std::uint64_t incarnation = incarnation_of(at.head.guard);
  const RegionId region = state_.pool_of(location).region();
  fill_head(incarnation, location);
  batch.slot = {at.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};

  RedoHead record{.word = at.slot.word, .bytes = bytes};
  record.checksum = checksum_of(record, batch.entry.data());
  batch.redo.reserve(kRedoBytes);
  std::memcpy(batch.redo.data(), &record, sizeof record);
  std::memcpy(batch.redo.data() + sizeof record, batch.entry.data(), bytes);
  batch.add(write(home_, state_.redo.id(), redo_at(state_.fabric.rank(), batch.redo_record),
                  batch.redo.data(), sizeof record + bytes));
  batch.add(write(home_, region, location.offset + kWordBytes, batch.entry.data() + kWordBytes,
                  bytes - kWordBytes));
  if (batch.slot.word != at.slot.word)
    batch.add(write(home_, state_.region_of(at.slot), at.slot.offset + kWordBytes, &batch.slot.word,
                    kWordBytes));
  const std::uint64_t value_bytes = head_of(batch.entry.data()).value_bytes;
  if (value_bytes != at.head.value_bytes)
    batch.add(fetch_add(home_, state_.index.id(), kValueBytesAt, value_bytes - at.head.value_bytes,
                        nullptr));
}

/// The new entry, the former one's end, and the slot, in this order: readers of the former entry
/// look again before any reader can see the new one.
void HeldChain::build_out_of_place(const Lookup& at, std::size_t bytes) noexcept {
  DUNLIN_ASSERT(entry_block_ && entry_block_->home == home_,
                "STO-3: a new entry has a block of its own");
  ChainBatch& batch = *batch_;
  const Location location{entry_is_large_, entry_block_->size_class, entry_block_->offset};
  const std::uint64_t incarnation = make_incarnation(state_.fabric.rank(), ++state_.incarnations);
  remote::SlabPool& pool = state_.pool_of(location);
  fill_head(incarnation, location);
  batch.slot = {at.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};

  batch.add(put(home_, pool.region(), location.offset, batch.entry.data(), bytes));
  batch.add(pool.link(*entry_block_));
  if (at.present) {
    const Location former = slot_word::location_of(at.slot.word);
    batch.guard = guard_of(incarnation_of(at.head.guard), EntryState::moved);
    batch.add(
        write(home_, state_.pool_of(former).region(), former.offset, &batch.guard, kWordBytes));
    batch.add(write(home_, state_.region_of(at.slot), at.slot.offset + kWordBytes, &batch.slot.word,
                    kWordBytes));
    batch.add(state_.pool_of(former).free({home_, former.size_class, former.offset}));
  } else if (at.has_vacant) {
    batch.add(write(home_, state_.region_of(at.vacant), at.vacant.offset, &batch.slot, kSlotBytes));
  } else {
    batch.bucket = {};
    batch.bucket.slots[0] = batch.slot;
    const std::uint64_t block = bucket_block_->offset;
    batch.link = slot_word::make(SlotType::header, 0, {false, bucket_block_->size_class, block},
                                 sizeof(Bucket));
    batch.add(put(home_, state_.small->region(), block, &batch.bucket, sizeof(Bucket)));
    batch.add(state_.small->link(*bucket_block_));
    batch.add(
        write(home_, state_.region_of(at.last_link), at.last_link.offset, &batch.link, kWordBytes));
  }
  if (!at.present) batch.add(fetch_add(home_, state_.index.id(), kKeysAt, 1, nullptr));
  const std::uint64_t value_bytes = head_of(batch.entry.data()).value_bytes;
  const std::uint64_t former_bytes = at.present ? at.head.value_bytes : 0;
  if (value_bytes != former_bytes)
    batch.add(
        fetch_add(home_, state_.index.id(), kValueBytesAt, value_bytes - former_bytes, nullptr));
}

void HeldChain::build_erase(const Lookup& at) noexcept {
  ChainBatch& batch = *batch_;
  const Location former = slot_word::location_of(at.slot.word);
  remote::SlabPool& pool = state_.pool_of(former);
  batch.guard = guard_of(incarnation_of(at.head.guard), EntryState::dead);
  batch.slot = {};
  batch.add(write(home_, pool.region(), former.offset, &batch.guard, kWordBytes));
  batch.add(write(home_, state_.region_of(at.slot), at.slot.offset, &batch.slot, kSlotBytes));
  batch.add(pool.free({home_, former.size_class, former.offset}));
  batch.add(fetch_add(home_, state_.index.id(), kKeysAt, UINT64_MAX, nullptr));
  if (at.head.value_bytes > 0)
    batch.add(fetch_add(home_, state_.index.id(), kValueBytesAt,
                        0 - std::uint64_t{at.head.value_bytes}, nullptr));
}

void HeldChain::build_unlock(const Lookup& at, std::uint64_t version) noexcept {
  static_cast<void>(batch());
  DUNLIN_ASSERT(is_held() && batch_->posted == 0, "STO-4: a chain is unlocked by its last write");
  DUNLIN_ASSERT(version == 0 || at.version == UINT64_MAX || version >= at.version,
                "STO-M3: no version of a chain is given twice");
  batch_->home = home_;
  batch_->unlock = {version, lock_ == Lock::lent ? word_ : 0};
  const RegionId region = state_.region_of(main_);
  batch_->add(version != 0
                  ? write(home_, region, main_.offset + kVersionAt, batch_->unlock.data(), 16)
                  : write(home_, region, main_.offset + kLockAt, &batch_->unlock[1], kWordBytes));
}

}  // namespace dunlin::store
