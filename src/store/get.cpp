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

/// Where reads are loads, each get of a batch would wait for its own misses of the cache. So it
/// asks for the lines that it looks at next, and goes on when the others have done the same.
bool State::may_wait_for_lines() const noexcept {
  return fabric.properties().reads_are_loads && progress.in_flight() >= 2;
}

bool State::waits_for_lines(const Lookup& at) noexcept {
  if (!at.is_get || !may_wait_for_lines()) return false;
  const Location location = slot_word::location_of(at.slot.word);
  fabric.prefetch(at.home, pool_of(location).region(), location.offset,
                  std::min(slot_word::bytes_of(at.slot.word), kMostPrefetchedBytes));
  fabric.wake_at(0);
  return true;
}

/// The header was asked for when the get began, if there is no cache.
bool State::waits_for_header(const Lookup& at) noexcept {
  if (options.cache_bytes == 0 || !may_wait_for_lines()) return false;
  fabric.prefetch(at.home, region_of(at.main), at.main.offset, sizeof(MainHeader));
  fabric.wake_at(0);
  return true;
}

/// Reads the entry at a cached location. `busy`: that was stale, or the entry is being written.
Protocol<Status> State::find_cached(Lookup& at, std::uint64_t word) {
  at.from_cache = true;
  at.slot = {.word = word};
  at.read_bytes = 0;
  if (!leads_to_entry(word)) co_return Status::busy;
  if (waits_for_lines(at)) co_await NextPoll();
  Sight sight = Sight::longer;
  while (sight == Sight::longer) {
    auto entry = reading_entry(at);
    const Status status = co_await entry;
    // The location may be of a former home, which has more memory.
    if (status == Status::out_of_range) co_return Status::busy;
    if (status != Status::ok) co_return status;
    take_clock(at);
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
    mark(at);
    if (!at.from_cache || entry_bytes(at.head) > slot_word::bytes_of(at.slot.word))
      cache.insert(at.hash,
                   slot_word::make(SlotType::entry, incarnation_of(at.head.guard),
                                   slot_word::location_of(at.slot.word), entry_bytes(at.head)));
  }
  return at.ended(Status::ok);
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
        if (waits_for_header(at)) co_await NextPoll();
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

/// Asks for what it will look at, and begins when the others of the batch have done the same.
Protocol<CallResult> State::get_of_batch(Lookup at) {
  const std::uint64_t word = routes.of(at.hash);
  if (options.cache_bytes > 0) {
    cache.prefetch(at.hash);
  } else if (const Rank home = route::owner(word);
             route::is_open(word) && homes[home].shape.headers() != 0) {
    const Place main = main_header(home, homes[home].shape.number_of(at.position()));
    fabric.prefetch(home, region_of(main), main.offset, sizeof(MainHeader));
  }
  fabric.wake_at(0);
  co_await NextPoll();
  CallResult result = co_await get(std::move(at));
  co_return result;
}

StoreOperation State::begin_get_of_batch(StoreKey key) {
  if (!fabric.properties().reads_are_loads) return begin_get(key);
  ++counters.gets;
  Lookup at(*this, Side::owner, key);
  at.is_get = at.wants_value = true;
  return StoreOperation(progress, get_of_batch(std::move(at)));
}

StoreOperation State::begin_get(StoreKey key) {
  ++counters.gets;
  Lookup at(*this, Side::owner, key);
  at.is_get = at.wants_value = true;
  const bool may_begin = !at.is_too_long && !progress.was_stopped();
  const MappedPart* const there =
      may_begin && owner_of(at) == Status::ok ? mapped(at.home) : nullptr;
  if (there != nullptr && get_mapped(*there, at) == Status::ok)
    return StoreOperation(progress, got(at));
  return StoreOperation(progress, get(std::move(at)));
}

StoreOperation State::begin_read(StoreKey key, SeenChain& seen) {
  ++counters.gets;
  return StoreOperation(progress, read_chain(key, seen));
}

// --- where memory is mapped ----------------------------------------------------------------------

/// As get() does. `ok`: the key is there, or absent. Else the call goes on as a protocol.
Status State::get_mapped(const MappedPart& there, Lookup& at) noexcept {
  at.locate(*this);
  if (const std::uint64_t cached = cache.find(at.hash); cached != 0) {
    at.from_cache = true;
    at.slot = {.word = cached};
    at.read_bytes = 0;
    at.present = leads_to_entry(cached) && look_at_entry(there, at) == Sight::key;
    if (room != nullptr) look_at_clock(there, at);  // for the hand
    if (at.present) return Status::ok;
    note_again(at);
    at.from_cache = false;
  }
  ++counters.cache_misses;
  const Status status = find_mapped(there, at);
  if (status != Status::ok || at.present) return status;
  const Place place = at.main.at(kDepthAt);
  const std::span<std::byte> part = place.in_slabs ? there.small : there.index;
  ++at.result.round_trips;
  at.depth = memory::load(word_at(part.data() + place.offset));  // STO-10, see check_absence()
  return has_left(at) ? follow(at) : Status::ok;
}

}  // namespace dunlin::store
