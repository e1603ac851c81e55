#include <algorithm>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/room.hpp"
#include "store/state.hpp"

/// Gets: by the cached location of the key, or through its chain (lookup.cpp).
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;

namespace {

/// The rest of a longer entry comes while its beginning is copied.
constexpr std::size_t kMostPrefetchedBytes = 4096;

[[nodiscard]] std::span<const std::byte> bytes_at(const MappedPart& there, const Place& place,
                                                  std::size_t bytes) noexcept {
  const std::span<const std::byte> part = place.in_slabs ? there.small : there.index;
  if (place.offset + bytes > part.size()) return {};
  return part.subspan(place.offset, bytes);
}

void prefetch_lines(std::span<const std::byte> bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += kCacheLineBytes)
    __builtin_prefetch(bytes.data() + at);
}

/// The word beside that hash in a bucket; 0: none.
[[nodiscard]] std::uint64_t word_of(std::span<const std::byte> bucket,
                                    std::uint64_t hash) noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(bucket.data());
  for (std::size_t i = 0; i < kSlots; ++i)
    if (memory::load(words[2 * i]) == hash) return memory::load(words[2 * i + 1]);
  return 0;
}

}  // namespace

/// Reads the entry at a cached location. `busy`: that was stale, or the entry is being written.
Protocol<Status> State::find_cached(Lookup& at, std::uint64_t word) {
  at.from_cache = true;
  at.slot = {.word = word};
  at.read_bytes = 0;
  if (!leads_to_entry(word)) co_return Status::busy;
  Sight sight = Sight::longer;
  while (sight == Sight::longer) {
    auto entry = reading_entry(at);
    const Status status = co_await entry;
    // The location may be of a former home, which has more memory.
    if (status == Status::out_of_range) co_return Status::busy;
    if (status != Status::ok) co_return status;
    take_clock(at.home, at.memory().clock);
    sight = at.judge();
  }
  at.present = sight == Sight::key;
  co_return at.present ? Status::ok : Status::busy;
}

/// STO-10. The words of a read come in any order, so a slot may have been looked at after the key
/// had left it for another chain, and the depth before. A key that its chain still has, by a depth
/// that was read later than the slots, was in none of them.
Protocol<Status> State::check_absence(Lookup& at) {
  const Place place = at.main.at(kDepthAt);
  auto reading = remote::post(
      fabric, read(at.home, region_of(place), place.offset, &at.memory().depth, kWordBytes),
      gate(at));
  const Status status = co_await reading;
  if (status != Status::ok) co_return status;
  at.depth = at.memory().depth;
  co_return has_left(at) ? follow(at) : Status::ok;
}

/// The cached location was stale, or the entry is being written.
void State::note_again(Lookup& at) noexcept {
  if (at.from_cache) {
    ++counters.cache_stale;
    cache.erase(at.hash);
  } else {
    ++counters.read_again;
  }
  ++at.tries;
}

/// A get has found the key, or that it is absent.
CallResult State::got(Lookup& at) noexcept {
  at.take_entry(*this);
  if (at.present) {
    if (at.from_cache) ++counters.cache_hits;
    mark(at.home, at.hash, at.slot.word);
    if (!at.from_cache || entry_bytes(at.head) > slot_word::bytes_of(at.slot.word))
      remember(at.hash, at.slot.word, at.head);
  }
  return at.ended(Status::ok);
}

/// Where the key is, and how long its entry is by now.
void State::remember(std::uint64_t hash, std::uint64_t word, const EntryHead& head) noexcept {
  cache.insert(hash, slot_word::make(SlotType::entry, incarnation_of(head.guard),
                                     slot_word::location_of(word), entry_bytes(head)));
}

/// After an attempt of a get that has ended so. `changed`: the get begins anew.
Protocol<Status> State::retry(Lookup& at, Status status, Rest& rest) {
  if (status == Status::busy) {
    note_again(at);
    if (at.tries >= kTriesAtOnce) co_await rest.next(fabric);
    co_return Status::changed;
  }
  if (status == Status::lost) status = co_await outlive(at);
  if (status != Status::ok) co_return status;
  at.tries = 0;
  at.version = UINT64_MAX;
  co_return Status::changed;
}

Protocol<CallResult> State::get(Lookup at) {
  if (at.is_too_long) co_return at.ended(Status::too_long);
  Rest rest;
  for (;;) {
    Status status = owner_of(at);
    if (status == Status::busy || status == Status::under_way) status = co_await find_owner(at);
    if (status == Status::ok) {
      at.locate(*this);
      const std::uint64_t cached = at.tries == 0 ? cache.find(at.hash) : 0;
      if (cached != 0) {
        status = co_await find_cached(at, cached);
      } else {
        ++counters.cache_misses;
        status = co_await find(at);
        if (status == Status::ok && !at.present) status = co_await check_absence(at);
      }
    }
    // STO-P8. A member that is not asked any more empties the slot, or gets copies of changes that
    // have not happened yet.
    const bool is_asked = routes.of(at.hash) == at.route;
    if (status == Status::ok && is_asked) co_return got(at);
    if (status == Status::ok) status = Status::changed;
    if (status != Status::changed) status = co_await retry(at, status, rest);
    if (status != Status::changed) co_return at.ended(status);
  }
}

/// A get of a transaction, which notes the chain that it went through. A slot may have been looked
/// at before the version of its chain was: a key is absent if it is in no slot after a version that
/// has not changed since (STO-7).
Protocol<CallResult> State::read_chain(StoreKey key, SeenChain& seen) {
  Lookup at(*this, Side::owner, key);
  at.wants_value = true;
  if (at.is_too_long) co_return at.ended(Status::too_long);
  Rest rest;
  for (;;) {
    Status status = co_await find_owner(at);
    const std::uint64_t former = at.version;
    if (status == Status::ok) {
      at.locate(*this);
      status = co_await find(at);
    }
    if (status == Status::ok && !at.present && former != at.version) status = Status::busy;
    if (status == Status::ok && routes.of(at.hash) != at.route) {
      at.version = UINT64_MAX;
      status = Status::changed;
    }
    if (status == Status::ok) {
      seen = {.home = at.home,
              .main = at.main,
              .version = at.version,
              .hash = at.hash,
              .route = at.route};
      co_return got(at);
    }
    if (status != Status::changed) status = co_await retry(at, status, rest);
    if (status != Status::changed) co_return at.ended(status);
  }
}

StoreOperation State::begin_read(StoreKey key, SeenChain& seen) {
  ++counters.gets;
  return StoreOperation(progress, read_chain(key, seen));
}

// --- where memory is mapped ----------------------------------------------------------------------

/// What a get of that key knows before it looks into the home's memory; but for the location.
KnownKey State::know(StoreKey key) noexcept {
  KnownKey known{.hash = hash_of(key.bytes())};
  known.route = routes.of(known.hash);
  if (route::is_open(known.route) && !progress.was_stopped()) [[likely]]
    known.there = usable(route::owner(known.route));
  return known;
}

void State::begin_get(StoreOperation& operation, StoreKey key) {
  KnownKey known = know(key);
  if (known.there != nullptr) known.location = cache.find(known.hash);
  begin_get(operation, key, known);
}

/// Requires that the operation is not under way. Its result is made where it is: no word of it is
/// written and then read again to be moved.
void State::begin_get(StoreOperation& operation, StoreKey key, const KnownKey& known) {
  ++counters.gets;
  std::uint32_t reads = 0;
  if (known.location != 0) {
    CallResult& result = operation.result_;
    prepare(result, key.bytes());
    const bool is_there = get_cached(known, key.bytes(), result);
    counters.entry_reads += reads = result.entry_reads;
    operation.progress_ = &progress;
    if (is_there) [[likely]]
      return;
    ++counters.cache_stale;
    cache.erase(known.hash);
  }
  Lookup at(*this, Side::owner, key);
  at.wants_value = true;
  if (known.there != nullptr && !at.is_too_long) {
    at.route = known.route;
    at.home = route::owner(known.route);
    at.result.entry_reads = at.result.round_trips = reads;
    if (get_mapped(*known.there, at) == Status::ok)
      return static_cast<void>(operation = StoreOperation(progress, got(at)));
  }
  operation = StoreOperation(progress, get(std::move(at)));
}

/// Where a key's main header is, in mapped memory.
std::span<const std::byte> State::main_of(const KnownKey& key) const noexcept {
  const Rank home = route::owner(key.route);
  const std::uint64_t position = IndexShape::position_of(key.hash);
  const Place main = main_header(home, homes[home].shape.number_of(position));
  return bytes_at(*key.there, main, sizeof(MainHeader));
}

/// The first look ahead for a key of a batch: asks for its place in the cache, or main header.
KnownKey State::ask_for_place(StoreKey key) noexcept {
  KnownKey known = know(key);
  if (cache.slots() > 0)
    cache.prefetch(known.hash);
  else if (known.there != nullptr)
    prefetch_lines(main_of(known));
  return known;
}

/// The second one: asks for the entry.
void State::ask_for_entry(KnownKey& key) noexcept {
  if (key.there == nullptr) return;
  key.location = cache.find(key.hash);
  const std::uint64_t word = cache.slots() > 0 ? key.location : word_of(main_of(key), key.hash);
  if (word == 0) return;
  const Location location = slot_word::location_of(word);
  const std::span<const std::byte> part = location.large ? key.there->large : key.there->small;
  const std::size_t bytes = std::min(slot_word::bytes_of(word), kMostPrefetchedBytes);
  if (location.offset + bytes <= part.size()) prefetch_lines(part.subspan(location.offset, bytes));
}

/// For a further call, which uses the memory of the former one again, unless its key is there.
void State::prepare(CallResult& result, std::span<const std::byte> key) {
  HeldMemory memory = std::move(result.memory);
  if (memory == nullptr || memory->has(key)) memory = take_memory();
  result = {};
  result.memory = std::move(memory);
}

/// Reads the entry at a cached location. False: that was stale, or the entry is being written.
bool State::get_cached(const KnownKey& at, std::span<const std::byte> key,
                       CallResult& result) noexcept {
  if (!leads_to_entry(at.location)) return false;
  const Location location = slot_word::location_of(at.location);
  const Rank home = route::owner(at.route);
  const std::size_t block = block_bytes(location);
  const std::span<const std::byte> part = location.large ? at.there->large : at.there->small;
  Image& image = result.memory->entry;
  EntryHead head;
  std::size_t bytes = std::min(std::max(slot_word::bytes_of(at.location), kCacheLineBytes), block);
  for (std::size_t wanted = bytes; wanted != 0;) {
    bytes = wanted;
    if (location.offset + bytes > part.size()) return false;
    result.round_trips = ++result.entry_reads;
    image.reserve(bytes);
    memory::copy(image.data(), part.data() + location.offset, bytes);  // the checksum orders it
    head = head_of(image.data());
    const bool is_same =
        head.guard == guard_of(incarnation_of(head.guard), EntryState::live) &&
        slot_word::lossy(incarnation_of(head.guard)) == slot_word::lossy_of(at.location);
    if (!is_same || !is_sound(head) || entry_bytes(head) > block) return false;
    wanted = entry_bytes(head) > bytes ? entry_bytes(head) : 0;
  }
  const std::byte* const of_entry = image.data() + kEntryHeadBytes;
  if (checksum_of(image.data(), head, location) != head.checksum || head.key_bytes != key.size() ||
      std::memcmp(of_entry, key.data(), key.size()) != 0)
    return false;
  result.memory->key_bytes = key.size();
  std::memcpy(result.memory->key.data(), of_entry, key.size());
  ++counters.cache_hits;
  if (room != nullptr) {
    look_at_clock(*at.there, home);  // for the hand
    mark(home, at.hash, at.location);
  }
  if (bytes > slot_word::bytes_of(at.location)) remember(at.hash, at.location, head);
  show_entry(home, head, result);
  result.value = {of_entry + head.key_bytes, result.found ? head.value_bytes : 0};
  return true;
}

/// As get() does. `ok`: the key is there, or absent. Else the call goes on as a protocol.
Status State::get_mapped(const MappedPart& there, Lookup& at) noexcept {
  ++counters.cache_misses;
  at.locate(*this);
  const Status status = find_mapped(there, at);
  if (status != Status::ok || at.present) return status;
  const Place place = at.main.at(kDepthAt);
  const std::span<std::byte> part = place.in_slabs ? there.small : there.index;
  ++at.result.round_trips;
  at.depth = memory::load(word_at(part.data() + place.offset));  // STO-10, see check_absence()
  return has_left(at) ? follow(at) : Status::ok;
}

}  // namespace dunlin::store
