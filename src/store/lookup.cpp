#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/room.hpp"
#include "store/state.hpp"

/// The way to a key's entry: by its cached location, or bucket by bucket.
namespace dunlin::store {

using remote::Status;

namespace {

[[nodiscard]] bool changes(Kind kind) noexcept { return kind != Kind::get && kind != Kind::read; }
/// Whether the call needs the value that it finds.
[[nodiscard]] bool needs_value(Kind kind) noexcept {
  return kind != Kind::put && kind != Kind::erase && kind != Kind::reap && kind != Kind::evict &&
         !is_hold(kind) && !is_copy(kind);
}

}  // namespace

void State::begin_lookup(Work& work) noexcept {
  const IndexShape& shape = homes[work.home].shape;
  work.number = shape.number_of(IndexShape::position_of(work.hash));
  work.main = main_header(work.home, work.number);
  work.bucket = work.main;
  work.present = work.has_vacant = work.from_cache = false;
  work.buckets = 0;
  work.vacant_count = 0;
  work.former_version = work.chain_version;
  work.read_bytes = 0;
  if (changes(work.kind)) {
    work.stage = work.locked ? Stage::bucket : Stage::lock;
    return;
  }
  work.stage = Stage::bucket;
  if (work.kind == Kind::read) return;
  const std::uint64_t cached = work.tries == 0 ? cache.find(work.hash) : 0;
  if (cached == 0) {
    ++counters.cache_misses;
    return;
  }
  work.from_cache = true;
  work.candidates = 1;
  work.candidate = 0;
  work.places[0] = {.word = cached};
  work.stage = Stage::entry;
}

bool State::read_bucket(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const std::size_t bytes = work.buckets == 0 ? sizeof(MainHeader) : sizeof(Bucket);
  const std::array batch{
      read(work.home, region_of(work.bucket), work.bucket.offset, &work.header, bytes)
          .notify(op.completion_),
      read(work.home, index.id(), kClockAt, work.clock.data(),
           room != nullptr ? sizeof work.clock : kWordBytes)
          .notify(op.completion_)};
  const bool clock = work.posted > 0 || wants_clock(work.home);
  return post(op, work.home, std::span(batch).first(clock ? 2 : 1), Stage::bucket_read);
}

bool State::bucket_read(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  ++op.bucket_reads_;
  ++counters.bucket_reads;
  take_clock(work);
  if (++work.buckets > kMostBuckets) return end(op, Status::out_of_range);
  if (work.buckets == 1) {
    work.chain_version = work.header.version;
    if (shed_depth::is(work.header.depth)) {
      if (changes(work.kind))
        learn_shed(work.home, IndexShape::position_of(work.hash), work.header.depth);
      work.header.depth = shed_depth::depth(work.header.depth);
    }
    // What is second at a home stays there until other homes have made it elsewhere. A caller that
    // has not heard of that learns it.
    const bool is_second = work.kind == Kind::copy_put || work.kind == Kind::copy_erase ||
                           work.kind == Kind::hold_copy;
    if (is_second && departed_depth::is(work.header.depth) &&
        departed_depth::is_swept(work.header.depth)) {
      look_at_index_again(work.home);
      if (is_hold(work.kind)) return end(op, Status::conflict);
      return leave(op, Status::busy);
    }
    if (departed_depth::is(work.header.depth) &&
        (is_copy(work.kind) || work.kind == Kind::hold_copy))
      work.header.depth = departed_depth::depth(work.header.depth);
    if (work.header.depth != 0 && has_left(work, work.header.depth))
      return go_to(op, work.header.depth);
    if (work.kind == Kind::take_chain) return end(op, Status::ok);
    if (work.kind == Kind::raise_copy) {
      work.next_version = work.chain_version;
      build_unlock(work, true);
      return commit(op);
    }
  }
  const Bucket& bucket = work.header.bucket;
  work.candidates = 0;
  for (std::size_t i = 0; i < kSlots; ++i) {
    const auto place = [&] {
      Place slot = work.bucket.at(i * kSlotBytes);
      slot.word = bucket.slots[i].word;
      return slot;
    };
    if (bucket.slots[i].word == 0) {
      if (!work.has_vacant) work.vacant = place();
      work.has_vacant = true;
      if (is_hold(work.kind) && work.vacant_count < work.vacants.size())
        work.vacants[work.vacant_count++] = place();
    } else if (work.kind == Kind::drop_stray ? (*work.is_stray)(bucket.slots[i].hash)
                                             : bucket.slots[i].hash == work.hash) {
      work.places[work.candidates++] = place();
    }
  }
  work.last_link = work.bucket.at(kLinkAt);
  work.last_link.word = bucket.link;
  work.next_link = bucket.link;
  work.candidate = 0;
  work.read_bytes = 0;
  if (work.candidates == 0) return next_bucket(op);
  work.stage = Stage::entry;
  return !pauses(work);
}

void State::take_clock(Work& work) noexcept {
  if (work.clock[0] == 0) return;
  sample_clock(work.home, work.clock[0]);
  work.clock[0] = 0;
  if (room != nullptr) room->of_homes[work.home].hands = {work.clock[2], work.clock[3]};
}

bool State::next_bucket(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (slot_word::type_of(work.next_link) != SlotType::header) return is_absent(op);
  work.bucket = {.in_slabs = true, .offset = slot_word::location_of(work.next_link).offset};
  work.stage = Stage::bucket;
  return true;
}

bool State::next_candidate(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  work.read_bytes = 0;
  if (work.from_cache) return look_again(op);
  if (++work.candidate == work.candidates) return next_bucket(op);
  work.stage = Stage::entry;
  return true;
}

/// The cached location was stale, or the entry is being written.
bool State::look_again(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (work.from_cache) {
    ++counters.cache_stale;
    cache.erase(work.hash);
  } else {
    ++counters.read_again;
  }
  ++work.tries;
  begin_lookup(work);
  if (work.tries < kTriesAtOnce) return true;
  begin_rest(work.rest);
  return false;
}

bool State::read_entry(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const std::uint64_t word = work.places[work.candidate].word;
  const Location location = slot_word::location_of(word);
  const std::size_t block = block_bytes(location);
  if (slot_word::type_of(word) != SlotType::entry || block == 0) return next_candidate(op);
  if (work.read_bytes == 0) {
    work.read_bytes = std::max(slot_word::bytes_of(word), kCacheLineBytes);
    if (work.locked && !needs_value(work.kind))
      work.read_bytes = std::min(work.read_bytes, entry_bytes(work.key_bytes, 0));
  }
  work.read_bytes = std::min(work.read_bytes, block);
  work.in.reserve(work.read_bytes);
  const std::array batch{
      read(work.home, pool_of(location).region(), location.offset, work.in.data(), work.read_bytes)
          .notify(op.completion_),
      read(work.home, index.id(), kClockAt, work.clock.data(), sizeof work.clock)
          .notify(op.completion_)};
  // A process whose gets are all cached would never learn where the hand is.
  const bool clock =
      room != nullptr && work.from_cache && (work.posted > 0 || wants_clock(work.home));
  return post(op, work.home, std::span(batch).first(clock ? 2 : 1), Stage::entry_read);
}

/// The entry that was read: the key's, another key's, or one that must be read again. Under the
/// lock no other member changes it, and it is whole.
bool State::entry_read(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  ++op.entry_reads_;
  ++counters.entry_reads;
  take_clock(work);
  const Place& place = work.places[work.candidate];
  const Location location = slot_word::location_of(place.word);
  const EntryHead head = head_of(work.in.data());
  const bool same = slot_word::lossy(incarnation_of(head.guard)) == slot_word::lossy_of(place.word);
  const EntryState state = state_of(head.guard);
  if (same && state == EntryState::dead && !work.from_cache) return next_candidate(op);
  if (!same || state != EntryState::live) return work.locked ? next_candidate(op) : look_again(op);
  if (!is_sound(head) || entry_bytes(head) > block_bytes(location))
    return work.locked ? next_candidate(op) : look_again(op);
  if (entry_bytes(head) > work.read_bytes && (!work.locked || needs_value(work.kind))) {
    work.read_bytes = entry_bytes(head);
    work.stage = Stage::entry;
    return true;
  }
  if (!work.locked && checksum_of(work.in.data(), head, location) != head.checksum)
    return look_again(op);
  const bool is_key =
      work.kind == Kind::drop_stray ||
      (head.key_bytes == work.key_bytes &&
       std::memcmp(work.in.data() + kEntryHeadBytes, work.key.data(), work.key_bytes) == 0);
  if (!is_key) return next_candidate(op);
  work.head = head;
  work.slot = place;
  return is_found(op);
}

bool State::is_found(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  work.present = true;
  op.ttl_ns_ = ttl_of(work.home, work.head.expiry_ns);
  op.found_ = op.ttl_ns_ != 0;
  if (work.from_cache) ++counters.cache_hits;
  if (op.found_) {
    op.version_ = work.head.version;
    if (needs_value(work.kind)) {
      op.value_ = work.in.data() + kEntryHeadBytes + work.head.key_bytes;
      op.value_bytes_ = work.head.value_bytes;
    }
  } else {
    op.ttl_ns_ = kNoExpiry;
  }
  if (changes(work.kind)) return decide(op);
  mark(work);
  if (!work.from_cache || entry_bytes(work.head) > slot_word::bytes_of(work.slot.word))
    cache.insert(work.hash,
                 slot_word::make(SlotType::entry, incarnation_of(work.head.guard),
                                 slot_word::location_of(work.slot.word), entry_bytes(work.head)));
  return end(op, Status::ok);
}

bool State::is_absent(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (changes(work.kind)) return decide(op);
  // A slot may have been looked at before the version of its chain was: absent is what is absent
  // from all slots after a version that has not changed since (STO-7).
  if (work.kind == Kind::read)
    return work.former_version != work.chain_version ? look_again(op) : end(op, Status::ok);
  work.stage = Stage::check;
  return true;
}

// --- chains that are split -----------------------------------------------------------------------

/// STO-10. The words of a read come in any order, so a slot may have been looked at after the key
/// had left it for another chain, and the depth before. A key that its chain still has, by a depth
/// that was read later than the slots, was in none of them.
bool State::check_absence(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const Place at = work.main.at(kDepthAt);
  return post(op, work.home,
              std::array{read(work.home, region_of(at), at.offset, &work.depth, kWordBytes)
                             .notify(op.completion_)},
              Stage::checked);
}

bool State::absence_checked(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (shed_depth::is(work.depth)) work.depth = shed_depth::depth(work.depth);
  return has_left(work, work.depth) ? go_to(op, work.depth) : end(op, Status::ok);
}

bool State::has_left(const Work& work, std::uint64_t depth) const noexcept {
  const IndexShape& shape = homes[work.home].shape;
  return !shape.is_depth(depth) ||
         shape.number_at(IndexShape::position_of(work.hash), static_cast<std::uint32_t>(depth)) !=
             work.number;
}

/// To the chain that has the key now: that depth was read in its former chain.
bool State::go_to(StoreOperation& op, std::uint64_t depth) noexcept {
  Work& work = *op.work_;
  const IndexShape& shape = homes[work.home].shape;
  if (departed_depth::is(depth)) {
    // A chain that was split before it departed says nothing of the positions that had left it.
    const std::uint64_t departed = std::exchange(depth, departed_depth::depth(depth));
    if (!shape.is_depth(depth) || !has_left(work, depth)) return follow(op, departed);
  }
  if (!shape.is_depth(depth)) return end(op, Status::out_of_range);
  const std::uint64_t number = learn_split(work.home, IndexShape::position_of(work.hash),
                                           work.number, static_cast<std::uint32_t>(depth));
  // No main header gives keys to an earlier one: a home that says so would have us go in circles.
  if (number <= work.number) return end(op, Status::out_of_range);
  if (is_hold(work.kind)) return end(op, Status::conflict);
  work.stage = Stage::attach;
  if (!work.locked || work.lock_is_held) return true;
  work.has_moved = true;
  build_unlock(work, false);
  return commit(op);
}

}  // namespace dunlin::store
