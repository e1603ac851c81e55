#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "store/state.hpp"

/// Changes of a chain, under its lock: one batch. Its order lets readers see a key before or after
/// the change, and lets the home repair a change that a death has cut off.
namespace dunlin::store {

using remote::Status;

namespace {

/// A block stays with its entry while it is at most so many times as large as it need be.
constexpr std::size_t kMostWaste = 4;
/// At a lock of the second home, before the change gives the one of the first home back. Only where
/// the second home has the lower rank: those that wait for a higher one never wait in a circle.
constexpr std::uint32_t kTriesOfCopy = 2;
constexpr std::uint64_t kRestOfThoseThatGiveWay = 16;  // times as long as that of others

}  // namespace

bool State::lock(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (const Status why = fault(work.home); why != Status::ok) return end(op, why);
  if (!is_hold(work.kind) && !work.has_lock_word)
    work.lock_word = lock_word::make(fabric.rank(), ++serial);
  const bool done =
      post(op, work.home,
           std::array{compare_swap(work.home, region_of(work.main), work.main.offset + kLockAt, 0,
                                   work.lock_word, &work.before)
                          .notify(op.completion_)},
           Stage::locked);
  return done;
}

bool State::locked(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (work.before == 0) {
    work.locked = true;
    work.stage = Stage::bucket;
    return true;
  }
  // A move has this chain already: the home has more chains than this process knows.
  if (work.kind == Kind::take_chain && work.before == work.lock_word) {
    look_at_index_again(work.home);
    work.stage = Stage::attach;
    begin_rest(work.rest);
    return false;
  }
  // STO-V4: its holder may wait for a place in the queue that evictions fill, or for room.
  if (work.kind == Kind::reap) return end(op, Status::ok);
  if (work.kind == Kind::evict) return end(op, Status::ok);
  ++counters.lock_waits;
  if (is_copy(work.kind) && work.kind != Kind::take_chain && work.home < work.first &&
      work.rest.times >= kTriesOfCopy)
    return end(op, Status::busy);
  work.stage = Stage::lock;
  begin_rest(work.rest);
  return false;
}

/// The key is found(), or its chain has been read to the end.
bool State::decide(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const std::span written(work.out.data() + kEntryHeadBytes + work.key_bytes, work.value_bytes);
  switch (work.kind) {
    case Kind::put:
      return change(op, written);
    case Kind::insert:
      return op.found_ ? leave(op, Status::ok) : change(op, written);
    case Kind::replace:
      return op.found_ ? change(op, written) : leave(op, Status::ok);
    case Kind::compare_and_set:
      return op.version_ == work.expected_version ? change(op, written) : leave(op, Status::ok);
    case Kind::expire:
      return op.found_ ? change(op, op.value()) : leave(op, Status::ok);
    case Kind::erase:
    case Kind::evict:
    case Kind::reap:
    case Kind::drop_stray:
      break;
    case Kind::update: {
      const auto current =
          op.found_ ? std::optional<std::span<const std::byte>>(op.value()) : std::nullopt;
      const StoreUpdate update = work.updater(current);
      if (update.action == StoreUpdate::Action::keep) return leave(op, Status::ok);
      if (update.action == StoreUpdate::Action::erase) break;
      work.ttl_ns = update.ttl_ns;
      return change(op, update.value);
    }
    case Kind::restore:
      if (!op.found_) return leave(op, Status::ok);
      op.version_ = work.head.version;
      build_unlock(work, false);
      return replicate(op);
    case Kind::copy_put:
    case Kind::copy_erase:
      // The one who changes the key is no longer at its first home: the change begins anew there.
      if (first_home_of(work.hash) != work.first) return leave(op, Status::conflict);
      if (work.kind == Kind::copy_put) return change(op, written);
      break;
    case Kind::get:
    case Kind::read:
    case Kind::hold:
    case Kind::hold_copy:
    case Kind::count:
    case Kind::raise_copy:
    case Kind::take_chain:
    case Kind::leave:
    case Kind::take_keys:
      return end(op, Status::ok);
  }
  const bool stays =
      (work.kind == Kind::reap && op.found_) ||
      (work.kind == Kind::evict && slot_word::location_of(work.slot.word) != work.victim);
  if (!work.present || stays) return leave(op, Status::ok);
  if (work.kind == Kind::reap) ++counters.expired;
  cancel_blocks(work);
  op.changed_ = op.found_ || work.kind == Kind::drop_stray;  // one that has expired, too
  op.version_ = 0;
  build_erase(work);
  return replicate(op);
}

/// Ends with that status, once the lock is given back.
bool State::leave(StoreOperation& op, Status status) noexcept {
  Work& work = *op.work_;
  op.changed_ = false;
  work.end_status = status;
  cancel_blocks(work);
  build_unlock(work, false);
  return commit(op);
}

bool State::change(StoreOperation& op, std::span<const std::byte> value) noexcept {
  Work& work = *op.work_;
  if (value.size() > kMaxStoreValueBytes) return leave(op, Status::too_long);
  work.value_bytes = value.size();
  const std::size_t bytes = entry_bytes(work.key_bytes, work.value_bytes);
  if (work.kind == Kind::update || work.kind == Kind::expire) {
    work.out.reserve(bytes);
    std::byte* const to = work.out.data() + kEntryHeadBytes + work.key_bytes;
    if (!value.empty()) std::memcpy(to, value.data(), value.size());
  }
  if (work.key_bytes > 0)
    std::memcpy(work.out.data() + kEntryHeadBytes, work.key.data(), work.key_bytes);
  std::uint64_t expiry = 0;
  if (work.ttl_ns == kKeepExpiry) {
    expiry = op.found_ ? work.head.expiry_ns : 0;
  } else if (work.ttl_ns < kLongestTtlNs) {
    expiry = std::max<std::uint64_t>(home_now_ns(work.home) + work.ttl_ns, 1);
  }
  const bool is_given = work.kind == Kind::copy_put;
  const std::uint64_t before =
      work.present ? std::max(work.head.version, work.chain_version) : work.chain_version;
  EntryHead head;
  head.version = before + 1;
  work.next_version = head.version;
  if (is_given) head.version = work.expected_version;
  head.expiry_ns = expiry;
  head.key_bytes = static_cast<std::uint32_t>(work.key_bytes);
  head.value_bytes = static_cast<std::uint32_t>(work.value_bytes);
  std::memcpy(work.out.data(), &head, sizeof head);
  op.changed_ = true;
  op.version_ = head.version;
  op.ttl_ns_ = ttl_of(work.home, expiry);

  Home& home = homes[work.home];
  const std::uint32_t records = ~home.records & ((1U << kRedoRecords) - 1);
  const std::size_t block = work.present ? block_bytes(slot_word::location_of(work.slot.word)) : 0;
  if (bytes <= block && bytes <= kMostInPlace &&
      block <= kMostWaste * std::max(bytes, kCacheLineBytes) && records != 0 &&
      fabric.rank() < home.ranks) {
    work.redo_record = static_cast<std::size_t>(std::countr_zero(records));
    home.records |= 1U << work.redo_record;
    cancel_blocks(work);
    build_in_place(work);
    mark(work);
    return replicate(op);
  }
  work.stage = Stage::room;
  return true;
}

bool State::find_room(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (const Status why = fault(work.home); why != Status::ok) return end(op, why);
  const std::size_t bytes = entry_bytes(work.key_bytes, work.value_bytes);
  const bool is_large = bytes > kMostSmallBytes;
  remote::SlabPool& pool = is_large ? *large : *small;
  const std::uint32_t size_class = pool.class_of(bytes).value_or(0);
  // After a wait for room, an update may have another value.
  const bool fits = work.has_entry_block && work.entry_is_large == is_large &&
                    pool.bytes_of(work.entry_block.size_class) >= bytes;
  const bool wants_bucket = !work.present && !work.has_vacant;
  if (!fits) {
    if (work.has_entry_block) (work.entry_is_large ? *large : *small).cancel(work.entry_block);
    work.has_entry_block = false;
    const auto block = block_for(work, pool, size_class);
    if (!block) return without_block(op, is_large, size_class);
    work.entry_block = *block;
    work.has_entry_block = true;
    work.entry_is_large = is_large;
  }
  if (work.has_bucket_block && !wants_bucket) {
    small->cancel(work.bucket_block);
    work.has_bucket_block = false;
  }
  if (wants_bucket && !work.has_bucket_block) {
    const auto block = block_for(work, *small, kIndirectClass);
    if (!block) return without_block(op, false, kIndirectClass);
    work.bucket_block = *block;
    work.has_bucket_block = true;
  }
  build_out_of_place(work);
  return replicate(op);
}

/// Of the home's memory. None: not yet, or never, if the home is full. A cache uses no larger block
/// than it needs: there will be one of the size.
std::optional<remote::SlabBlock> State::block_for(Work& work, remote::SlabPool& pool,
                                                  std::uint32_t size_class) noexcept {
  const bool was_asked = work.asked_for == size_class;
  work.out_of_room = was_asked && pool.full_class(work.home, size_class);
  auto block = work.out_of_room && room == nullptr
                   ? pool.allocate_held(work.home, pool.bytes_of(size_class))
                   : pool.allocate_class(work.home, size_class);
  if (block) work.out_of_room = false;
  // Known at once, with no completion that would wake this process.
  if (!block && !work.out_of_room && pool.full_class(work.home, size_class)) look_again_soon();
  work.asked_for = size_class;
  return block;
}

void State::cancel_blocks(Work& work) noexcept {
  if (work.has_entry_block) (work.entry_is_large ? *large : *small).cancel(work.entry_block);
  if (work.has_bucket_block) small->cancel(work.bucket_block);
  work.has_entry_block = work.has_bucket_block = false;
}

// --- the batches ---------------------------------------------------------------------------------

void State::fill_head(Work& work, std::uint64_t incarnation, const Location& location) noexcept {
  EntryHead head = head_of(work.out.data());
  head.guard = guard_of(incarnation, EntryState::live);
  head.checksum = checksum_of(work.out.data(), head, location);
  std::memcpy(work.out.data(), &head, sizeof head);
}

/// The redo record first, so that an entry that is half written can be completed by its home.
void State::build_in_place(Work& work) noexcept {
  const Location location = slot_word::location_of(work.slot.word);
  const std::size_t bytes = entry_bytes(work.key_bytes, work.value_bytes);
  const std::uint64_t incarnation = incarnation_of(work.head.guard);
  const RegionId region = pool_of(location).region();
  fill_head(work, incarnation, location);
  work.new_slot = {work.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};

  RedoHead record{.word = work.slot.word, .bytes = bytes};
  record.checksum = checksum_of(record, work.out.data());
  work.redo.reserve(kRedoBytes);
  std::memcpy(work.redo.data(), &record, sizeof record);
  std::memcpy(work.redo.data() + sizeof record, work.out.data(), bytes);
  work.add(write(work.home, redo.id(), redo_at(fabric.rank(), work.redo_record), work.redo.data(),
                 sizeof record + bytes));
  work.add(write(work.home, region, location.offset + kWordBytes, work.out.data() + kWordBytes,
                 bytes - kWordBytes));
  if (work.new_slot.word != work.slot.word)
    work.add(write(work.home, region_of(work.slot), work.slot.offset + kWordBytes,
                   &work.new_slot.word, kWordBytes));
  if (work.value_bytes != work.head.value_bytes)
    work.add(fetch_add(work.home, index.id(), kValueBytesAt,
                       work.value_bytes - work.head.value_bytes, nullptr));
  build_unlock(work, true);
}

/// The new entry, the former one's end, and the slot, in this order: readers of the former entry
/// look again before any reader can see the new one.
void State::build_out_of_place(Work& work) noexcept {
  const Location location{work.entry_is_large, work.entry_block.size_class,
                          work.entry_block.offset};
  const std::size_t bytes = entry_bytes(work.key_bytes, work.value_bytes);
  const std::uint64_t incarnation = make_incarnation(fabric.rank(), ++incarnations);
  remote::SlabPool& pool = pool_of(location);
  fill_head(work, incarnation, location);
  work.new_slot = {work.hash, slot_word::make(SlotType::entry, incarnation, location, bytes)};

  work.add(put(work.home, pool.region(), location.offset, work.out.data(), bytes));
  work.add(pool.link(work.entry_block));
  if (work.present) {
    const Location former = slot_word::location_of(work.slot.word);
    work.new_guard = guard_of(incarnation_of(work.head.guard), EntryState::moved);
    work.add(
        write(work.home, pool_of(former).region(), former.offset, &work.new_guard, kWordBytes));
    work.add(write(work.home, region_of(work.slot), work.slot.offset + kWordBytes,
                   &work.new_slot.word, kWordBytes));
    work.add(pool_of(former).free({work.home, former.size_class, former.offset}));
  } else if (work.has_vacant) {
    work.add(
        write(work.home, region_of(work.vacant), work.vacant.offset, &work.new_slot, kSlotBytes));
  } else {
    work.new_bucket = {};
    work.new_bucket.slots[0] = work.new_slot;
    const std::uint64_t at = work.bucket_block.offset;
    work.new_link = slot_word::make(SlotType::header, 0, {false, work.bucket_block.size_class, at},
                                    sizeof(Bucket));
    work.add(put(work.home, small->region(), at, &work.new_bucket, sizeof(Bucket)));
    work.add(small->link(work.bucket_block));
    work.add(write(work.home, region_of(work.last_link), work.last_link.offset, &work.new_link,
                   kWordBytes));
  }
  if (!work.present) work.add(fetch_add(work.home, index.id(), kKeysAt, 1, nullptr));
  const std::uint64_t former_bytes = work.present ? work.head.value_bytes : 0;
  if (work.value_bytes != former_bytes)
    work.add(
        fetch_add(work.home, index.id(), kValueBytesAt, work.value_bytes - former_bytes, nullptr));
  build_unlock(work, true);
}

void State::build_erase(Work& work) noexcept {
  const Location former = slot_word::location_of(work.slot.word);
  remote::SlabPool& pool = pool_of(former);
  work.new_guard = guard_of(incarnation_of(work.head.guard), EntryState::dead);
  work.new_slot = {};
  EntryHead head;
  head.version = std::max(work.head.version, work.chain_version) + 1;
  work.next_version = head.version;
  work.out.reserve(kEntryHeadBytes);
  std::memcpy(work.out.data(), &head, sizeof head);
  work.add(write(work.home, pool.region(), former.offset, &work.new_guard, kWordBytes));
  work.add(write(work.home, region_of(work.slot), work.slot.offset, &work.new_slot, kSlotBytes));
  work.add(pool.free({work.home, former.size_class, former.offset}));
  work.add(fetch_add(work.home, index.id(), kKeysAt, UINT64_MAX, nullptr));
  if (work.head.value_bytes > 0)
    work.add(fetch_add(work.home, index.id(), kValueBytesAt,
                       0 - std::uint64_t{work.head.value_bytes}, nullptr));
  build_unlock(work, true);
}

void State::build_unlock(Work& work, bool changed) noexcept {
  // A second home's chain has other keys, but no version in it is given twice.
  const std::uint64_t given = is_copy(work.kind) ? work.expected_version : 0;
  work.unlock = {changed ? std::max(work.next_version, given) : 0,
                 work.keeps_lock ? work.lock_word : 0};
  const std::uint64_t at = work.main.offset;
  const RegionId region = region_of(work.main);
  work.add(changed ? write(work.home, region, at + kVersionAt, work.unlock.data(), 16)
                   : write(work.home, region, at + kLockAt, &work.unlock[1], kWordBytes));
}

/// Each source stays until it is used, also if the caller gives up; the last is told when all has
/// been placed.
bool State::commit(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  work.stage = Stage::commit;
  if (work.posted == 0)
    for (std::size_t i = 0; i < work.steps; ++i)
      work.batch[i] = work.batch[i].notify(
          op.completion_, i + 1 == work.steps ? Notify::remotely : Notify::locally);
  return post(op, work.home, std::span(work.batch).first(work.steps), Stage::committed);
}

bool State::committed(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (work.waits_for_room) {  // the lock is given back
    work.waits_for_room = work.locked = false;
    work.steps = 0;
    op.found_ = false;
    op.version_ = 0;
    op.value_ = nullptr;
    op.value_bytes_ = 0;
    work.stage = Stage::await_room;
    return true;
  }
  if (work.has_moved) {  // likewise; the key has another chain
    work.has_moved = work.locked = false;
    work.steps = 0;
    work.stage = Stage::attach;
    if (!std::exchange(work.gives_way, false)) return true;
    // Long enough for others to find both locks free.
    work.rest.until_ns = fabric.now_ns() + work.rest.next_ns() * kRestOfThoseThatGiveWay;
    fabric.wake_at(work.rest.until_ns);
    return false;
  }
  if (is_copy(work.kind)) return end(op, work.end_status);
  if (op.changed_ && work.new_slot.word != 0) cache.insert(work.hash, work.new_slot.word);
  if (op.changed_ && work.new_slot.word == 0) cache.erase(work.hash);
  return end(op, work.end_status);
}

}  // namespace dunlin::store
