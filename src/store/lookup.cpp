#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "store/room.hpp"
#include "store/state.hpp"

/// The way to a key's entry, bucket by bucket: as a protocol, and as plain functions where memory
/// is mapped.
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;

// --- what is searched, and what was found --------------------------------------------------------

Lookup::Lookup(State& state, Side its_side, StoreKey key) : side(its_side) {
  const std::span<const std::byte> bytes = key.bytes();
  result.memory = state.take_memory();
  memory().clock = {};
  is_too_long = bytes.size() > kMaxStoreKeyBytes;
  memory().key_bytes = std::min(bytes.size(), kMaxStoreKeyBytes);
  if (!bytes.empty()) std::memcpy(memory().key.data(), bytes.data(), memory().key_bytes);
  hash = hash_of(this->key());
}

void Lookup::locate(const State& state) noexcept {
  number = state.homes[home].shape.number_of(position());
  main = state.main_header(home, number);
  present = has_vacant = from_cache = false;
  if (vacants != nullptr) vacants->clear();
}

void Lookup::note_vacant(const Place& bucket, std::size_t i) {
  if (!has_vacant) vacant = bucket.at(i * kSlotBytes);
  has_vacant = true;
  if (vacants != nullptr && vacants->size() < kMaxTransactionWrites)
    vacants->push_back(bucket.at(i * kSlotBytes));
}

void Lookup::note_slot(const Place& bucket, std::size_t i) noexcept {
  slot = bucket.at(i * kSlotBytes);
  slot.word = result.memory->header.bucket.slots[i].word;
  read_bytes = 0;
}

std::size_t Lookup::bytes_to_read(std::size_t block) const noexcept {
  std::size_t bytes = read_bytes;
  if (bytes == 0) {
    bytes = std::max(slot_word::bytes_of(slot.word), kCacheLineBytes);
    if (is_locked && !wants_value) bytes = std::min(bytes, entry_bytes(key().size(), 0));
  }
  return std::min(bytes, block);
}

Sight Lookup::judge() noexcept {
  const std::byte* const entry = memory().entry.data();
  const Location location = slot_word::location_of(slot.word);
  head = head_of(entry);
  const bool same = slot_word::lossy(incarnation_of(head.guard)) == slot_word::lossy_of(slot.word);
  const EntryState state = state_of(head.guard);
  const Sight unlike = is_locked ? Sight::other : Sight::again;
  if (same && state == EntryState::dead && !from_cache) return Sight::other;
  if (!same || state != EntryState::live) return unlike;
  if (!is_sound(head) || entry_bytes(head) > block_bytes(location)) return unlike;
  if (entry_bytes(head) > read_bytes && (!is_locked || wants_value)) {
    read_bytes = entry_bytes(head);
    return Sight::longer;
  }
  if (!is_locked && checksum_of(entry, head, location) != head.checksum) return Sight::again;
  const bool is_key = head.key_bytes == key().size() &&
                      std::memcmp(entry + kEntryHeadBytes, key().data(), key().size()) == 0;
  if (is_key) return Sight::key;
  return from_cache ? Sight::again : Sight::other;
}

void Lookup::take_entry(const State& state) noexcept {
  result.found = result.changed = false;  // also of an attempt before this one
  result.version = 0;
  result.ttl_ns = kNoExpiry;
  result.value = {};
  if (present) state.show_entry(home, head, result);
  if (result.found && wants_value)
    result.value = {memory().entry.data() + kEntryHeadBytes + head.key_bytes, head.value_bytes};
}

CallResult Lookup::ended(Status status) noexcept {
  result.status = status;
  if (status != Status::ok) result.changed = false;
  return std::move(result);
}

/// What the caller sees of an entry, but for the value; nothing, if it has expired.
void State::show_entry(Rank home, const EntryHead& head, CallResult& result) const noexcept {
  const std::uint64_t ttl = ttl_of(home, head.expiry_ns);
  if (ttl == 0) return;
  result.found = true;
  result.ttl_ns = ttl;
  result.version = head.version;
}

// --- where a key is ------------------------------------------------------------------------------

/// `ok`: the key's owner, whose index is known. `busy`, `under_way`: not known yet. Else why that
/// member cannot be used.
Status State::owner_of(Lookup& at) noexcept {
  at.route = routes.of(at.hash);
  if (!route::is_open(at.route)) [[unlikely]]
    return why_closed(at.route);
  at.home = route::owner(at.route);
  if (const Status why = fault(at.home); why != Status::ok) return why;
  return know_index(at.home);
}

/// Of a slot that is not open, or not known yet.
Status State::why_closed(std::uint64_t word) const noexcept {
  if (route::is_lost(word)) return Status::lost;
  if (placement == nullptr) return Status::busy;
  if (!placement->why_stopped().empty()) return Status::stopped;
  if (map().created() || !placement->ready()) return Status::busy;
  const auto refused = [](const Home& home) { return home.refused; };
  if (std::ranges::any_of(homes, refused)) return Status::refused;
  // All members that were to hold keys may be gone before there was a map.
  for (Rank rank = 0; rank < members; ++rank)
    if (!is_gone(rank)) return Status::busy;
  const auto holds = [](const Holder& one) { return one.weight > 0; };
  return std::ranges::any_of(map().members(), holds) ? Status::busy : Status::lost;
}

Protocol<Status> State::find_owner(Lookup& at) {
  Rest rest;
  for (;;) {
    const Status status = owner_of(at);
    if (status == Status::under_way) {
      co_await NextPoll();
    } else if (status == Status::busy) {
      co_await rest.next(fabric);
    } else {
      co_return status;
    }
  }
}

/// As find_owner(), for a home that the call does not choose.
Protocol<Status> State::find_index(Rank home) {
  for (;;) {
    Status status = fault(home);
    if (status == Status::ok) status = know_index(home);
    if (status != Status::under_way) co_return status;
    co_await NextPoll();
  }
}

/// After the key's owner has failed: waits until the slot has another one. `ok`: it has.
Protocol<Status> State::outlive(const Lookup& at) {
  if (placement == nullptr || !route::is_open(at.route)) co_return Status::lost;
  Rest rest;
  while (route::owner(routes.of(at.hash)) == at.home && fault(at.home) == Status::lost) {
    if (!placement->why_stopped().empty()) co_return Status::lost;
    co_await rest.next(fabric);
  }
  co_return route::is_lost(routes.of(at.hash)) ? Status::lost : Status::ok;
}

// --- the chain -----------------------------------------------------------------------------------

/// What the chain's main header says. `ok`: the chain has the key's position. `changed`: another
/// one has it.
Status State::take_header(Lookup& at) noexcept {
  at.version = at.memory().header.version;
  at.depth = at.memory().header.depth;
  return at.depth != 0 && has_left(at) ? follow(at) : Status::ok;
}

bool State::has_left(const Lookup& at) const noexcept {
  const IndexShape& shape = homes[at.home].shape;
  return !shape.is_depth(at.depth) ||
         shape.number_at(at.position(), static_cast<std::uint32_t>(at.depth)) != at.number;
}

/// `changed`: this process knows which chain has the key now, by the depth of its former chain.
Status State::follow(Lookup& at) noexcept {
  const IndexShape& shape = homes[at.home].shape;
  if (!shape.is_depth(at.depth)) return Status::out_of_range;
  const std::uint64_t next =
      learn_split(at.home, at.position(), at.number, static_cast<std::uint32_t>(at.depth));
  // No main header gives keys to an earlier one: a home that says so would have us go in circles.
  return next > at.number ? Status::changed : Status::out_of_range;
}

void State::take_clock(Rank home, std::array<std::uint64_t, 4>& clock) noexcept {
  if (clock[0] == 0) return;
  sample_clock(home, clock[0]);
  clock[0] = 0;
  if (room != nullptr) room->of_homes[home].hands = {clock[2], clock[3]};
}

void State::count_bucket(Lookup& at) noexcept {
  ++at.result.bucket_reads;
  ++counters.bucket_reads;
}

/// Before the entry of the slot at hand is read.
void State::count_entry(Lookup& at) noexcept {
  ++at.result.entry_reads;
  ++counters.entry_reads;
  at.read_bytes = at.bytes_to_read(block_bytes(slot_word::location_of(at.slot.word)));
  at.memory().entry.reserve(at.read_bytes);
}

/// Reads a bucket; and the home's clock, if it was not read for long.
remote::Batch<2, HomeGate> State::reading_bucket(Lookup& at, const Place& bucket,
                                                 std::size_t bytes) noexcept {
  CallMemory& memory = at.memory();
  count_bucket(at);
  std::array<Operation, 2> reads{
      read(at.home, region_of(bucket), bucket.offset, &memory.header, bytes)};
  const bool clock = wants_clock(at.home);
  if (clock)
    reads[1] = read(at.home, index.id(), kClockAt, memory.clock.data(),
                    room != nullptr ? sizeof memory.clock : kWordBytes);
  return {fabric, std::span(reads).first(clock ? 2 : 1), gate(at)};
}

/// Reads the entry of the slot at hand. A process whose gets are all cached would never learn where
/// the hand is.
remote::Batch<2, HomeGate> State::reading_entry(Lookup& at) noexcept {
  CallMemory& memory = at.memory();
  const Location location = slot_word::location_of(at.slot.word);
  count_entry(at);
  std::array<Operation, 2> reads{read(at.home, pool_of(location).region(), location.offset,
                                      memory.entry.data(), at.read_bytes)};
  const bool clock = room != nullptr && at.from_cache && wants_clock(at.home);
  if (clock)
    reads[1] = read(at.home, index.id(), kClockAt, memory.clock.data(), sizeof memory.clock);
  return {fabric, std::span(reads).first(clock ? 2 : 1), gate(at)};
}

/// Goes through the chain. `ok`: the key's entry is there, or the key is in no slot. `changed`: the
/// key has another chain. `busy`: its entry is being written.
Protocol<Status> State::find(Lookup& at) {
  Place bucket = at.main;
  for (std::uint32_t seen = 1; seen <= kMostBuckets; ++seen) {
    auto reading = reading_bucket(at, bucket, seen == 1 ? sizeof(MainHeader) : sizeof(Bucket));
    Status status = co_await reading;
    if (status != Status::ok) co_return status;
    take_clock(at.home, at.memory().clock);
    if (seen == 1) status = take_header(at);
    if (status != Status::ok) co_return status;
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Slot slot = at.memory().header.bucket.slots[i];
      if (slot.word == 0) at.note_vacant(bucket, i);
      if (slot.word == 0 || !at.is_candidate(slot.hash) || !leads_to_entry(slot.word)) continue;
      at.note_slot(bucket, i);
      Sight sight = Sight::longer;
      while (sight == Sight::longer) {
        auto entry = reading_entry(at);
        status = co_await entry;
        if (status != Status::ok) co_return status;
        sight = at.judge();
      }
      at.present = sight == Sight::key;
      if (sight == Sight::other) continue;
      co_return at.present ? Status::ok : Status::busy;
    }
    const std::uint64_t link = at.memory().header.bucket.link;
    at.last_link = bucket.at(kLinkAt);
    at.last_link.word = link;
    if (slot_word::type_of(link) != SlotType::header) co_return Status::ok;
    bucket = {.in_slabs = true, .offset = slot_word::location_of(link).offset};
    if (seen % kStepsAtOnce == 0) co_await NextPoll();
  }
  co_return Status::out_of_range;
}

// --- where memory is mapped ----------------------------------------------------------------------

/// Null: it is not.
const MappedPart* State::mapped(Rank home) noexcept {
  if (!fabric.properties().reads_are_loads) return nullptr;
  MappedPart& there = homes[home].mapped;
  if (there.found_in != membership_stamp() || there.index.empty()) {
    there = {.index = fabric.reach(home, index.id()),
             .small = fabric.reach(home, small->region()),
             .large = fabric.reach(home, large->region()),
             .found_in = membership_stamp()};
    if (there.small.empty()) there.index = {};
  }
  return there.index.empty() ? nullptr : &there;
}

const MappedPart* State::find_usable(Rank home) noexcept {
  if (progress.was_stopped() || fault(home) != Status::ok || know_index(home) != Status::ok)
    return nullptr;
  const MappedPart* const there = mapped(home);
  if (there != nullptr) homes[home].usable_in = there->found_in;
  return there;
}

void State::look_at_clock(const MappedPart& there, Rank home) noexcept {
  if (!wants_clock(home)) return;
  std::array<std::uint64_t, 4> clock{};
  memory::fetch(clock.data(), there.index.data() + kClockAt, sizeof clock);
  take_clock(home, clock);
}

/// As find() does.
Status State::find_mapped(const MappedPart& there, Lookup& at) noexcept {
  CallMemory& memory = at.memory();
  look_at_clock(there, at.home);
  Place bucket = at.main;
  for (std::uint32_t seen = 1; seen <= kMostBuckets; ++seen) {
    const std::span<std::byte> part = bucket.in_slabs ? there.small : there.index;
    const std::size_t bytes = seen == 1 ? sizeof(MainHeader) : sizeof(Bucket);
    if (bucket.offset + bytes > part.size()) return Status::out_of_range;
    count_bucket(at);
    ++at.result.round_trips;
    memory::fetch(&memory.header, part.data() + bucket.offset, bytes);
    if (seen == 1)
      if (const Status status = take_header(at); status != Status::ok) return status;
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Slot& slot = memory.header.bucket.slots[i];
      if (slot.word == 0) at.note_vacant(bucket, i);
      if (slot.word == 0 || !at.is_candidate(slot.hash) || !leads_to_entry(slot.word)) continue;
      at.note_slot(bucket, i);
      const Sight sight = look_at_entry(there, at);
      at.present = sight == Sight::key;
      if (sight != Sight::other) return at.present ? Status::ok : Status::busy;
    }
    at.last_link = bucket.at(kLinkAt);
    at.last_link.word = memory.header.bucket.link;
    if (slot_word::type_of(at.last_link.word) != SlotType::header) return Status::ok;
    bucket = {.in_slabs = true, .offset = slot_word::location_of(at.last_link.word).offset};
  }
  return Status::out_of_range;
}

Sight State::look_at_entry(const MappedPart& there, Lookup& at) noexcept {
  const Location location = slot_word::location_of(at.slot.word);
  const std::span<std::byte> part = location.large ? there.large : there.small;
  Sight sight = Sight::longer;
  while (sight == Sight::longer) {
    count_entry(at);
    ++at.result.round_trips;
    if (location.offset + at.read_bytes > part.size()) return Sight::again;
    memory::copy(at.memory().entry.data(), part.data() + location.offset, at.read_bytes);
    sight = at.judge();
  }
  return sight;
}

/// Takes the lock of the chain if it is free.
bool State::lock_mapped(const MappedPart& there, Lookup& at, HeldChain& chain) noexcept {
  const std::span<std::byte> part = at.main.in_slabs ? there.small : there.index;
  if (at.main.offset + sizeof(MainHeader) > part.size()) return false;
  const std::uint64_t word = next_lock_word();
  std::byte* const lock = part.data() + at.main.offset + kLockAt;
  if (memory::compare_swap(lock, 0, word) != 0) return false;
  ++at.result.round_trips;
  chain.use_lock(at, word, false);
  at.is_locked = true;
  return true;
}

}  // namespace dunlin::store
