#include "store/change.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "assert.hpp"
#include "store/held_chain.hpp"
#include "store/state.hpp"

/// Changes of one key. A change takes the lock of the key's chain, finds the key, decides, and
/// posts one batch, which unlocks the chain.
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;

namespace {

/// A block stays with its entry while it is at most so many times as large as it need be.
constexpr std::size_t kMostWaste = 4;
/// A change that gives way pauses so many times as long as others, so that these find both locks
/// free.
constexpr std::uint64_t kPausesOfGivingWay = 16;

}  // namespace

// --- what all changes share ----------------------------------------------------------------------

/// Takes the lock of the chain, by that word. `busy`: the call does not wait any longer.
Protocol<Status> State::lock(Lookup& at, HeldChain& chain, std::uint64_t word, Patience patience) {
  Rest rest;
  for (;;) {
    if (const Status why = fault(at.home); why != Status::ok) co_return why;
    std::uint64_t before = 0;
    auto swap = remote::post(fabric, chain.take(at, word, before), gate(at));
    const Status status = co_await swap;
    if (status != Status::ok) co_return status;
    if (before == 0) {
      chain.taken();
      at.is_locked = true;
      co_return Status::ok;
    }
    chain.not_taken();
    if (patience.attempts_at(at.home) == 1) co_return Status::busy;
    ++counters.lock_waits;
    if (rest.times + 1 >= patience.attempts_at(at.home)) co_return Status::busy;
    co_await rest.next(fabric);
  }
}

/// Gives the lock back without a change; returns `end` then.
Protocol<Status> State::unlock(Lookup& at, HeldChain& chain, Status end) {
  at.is_locked = false;
  if (chain.is_lent()) co_return end;
  chain.build_unlock(at, 0);
  const Status status = co_await commit(at, chain);
  co_return status == Status::ok ? end : status;
}

/// The key is found, or its chain has been read to the end. `value` gets what is to be put.
Deed State::decide(Change& one, const Lookup& at, std::span<const std::byte>& value) {
  const bool found = at.result.found;
  const auto put_if = [](bool is_true) { return is_true ? Deed::put : Deed::keep; };
  const auto erase_if = [](bool is_true) { return is_true ? Deed::erase : Deed::keep; };
  switch (one.kind) {
    case Kind::put:
    case Kind::copy_put:
      return Deed::put;
    case Kind::insert:
      return put_if(!found);
    case Kind::replace:
      return put_if(found);
    case Kind::compare_and_set:
      return put_if(at.result.version == one.version);
    case Kind::expire:
      value = at.result.value;
      return put_if(found);
    case Kind::update: {
      const auto current =
          found ? std::optional<std::span<const std::byte>>(at.result.value) : std::nullopt;
      const StoreUpdate update = one.updater(current);
      if (update.action == StoreUpdate::Action::keep) return Deed::keep;
      if (update.action == StoreUpdate::Action::erase) return erase_if(at.present);
      value = update.value;
      one.ttl_ns = update.ttl_ns;
      return Deed::put;
    }
    case Kind::erase:
    case Kind::copy_erase:
      return erase_if(at.present);
    case Kind::evict:
      return erase_if(at.present && slot_word::location_of(at.slot.word) == one.victim);
    case Kind::reap:
      return erase_if(at.present && !found);
    case Kind::restore:
      return found ? Deed::copy : Deed::keep;
  }
  return Deed::keep;
}

/// The version that the key gets is higher than all that the chain has given.
void State::write_entry(const Change& one, Lookup& at, ChainBatch& batch,
                        std::span<const std::byte> value, std::uint64_t version) noexcept {
  std::byte* const entry = batch.entry.data();
  const std::span<const std::byte> key = at.key();
  if (!key.empty()) std::memcpy(entry + kEntryHeadBytes, key.data(), key.size());
  EntryHead head;
  head.version = one.is_copy() ? one.version : version;
  if (one.ttl_ns == kKeepExpiry) {
    head.expiry_ns = at.result.found ? at.head.expiry_ns : 0;
  } else if (one.ttl_ns < kLongestTtlNs) {
    head.expiry_ns = std::max<std::uint64_t>(home_now_ns(at.home) + one.ttl_ns, 1);
  }
  head.key_bytes = static_cast<std::uint32_t>(key.size());
  head.value_bytes = static_cast<std::uint32_t>(value.size());
  std::memcpy(entry, &head, sizeof head);
  at.result.changed = true;
  at.result.version = head.version;
  at.result.ttl_ns = ttl_of(at.home, head.expiry_ns);
}

bool State::fits_in_place(const Lookup& at, std::size_t bytes) noexcept {
  const std::size_t block = at.present ? block_bytes(slot_word::location_of(at.slot.word)) : 0;
  return bytes <= block && bytes <= kMostInPlace &&
         block <= kMostWaste * std::max(bytes, kCacheLineBytes);
}

/// Makes the new entry, and the batch that puts it in the place of the former one, if it fits
/// there.
bool State::put_in_place(const Change& one, Lookup& at, HeldChain& chain,
                         std::span<const std::byte> value, std::uint64_t version) noexcept {
  ChainBatch& batch = chain.batch();
  const std::size_t bytes = entry_bytes(at.key().size(), value.size());
  batch.entry.reserve(bytes);
  std::byte* const to = batch.entry.data() + kEntryHeadBytes + at.key().size();
  if (value.data() != to && !value.empty()) std::memcpy(to, value.data(), value.size());
  write_entry(one, at, batch, value, version);
  if (!fits_in_place(at, bytes) || !chain.take_record()) return false;
  chain.cancel_blocks();
  chain.build_in_place(at, bytes);
  mark(at.home, at.hash, at.slot.word);
  return true;
}

void State::erase(const Change& one, Lookup& at, HeldChain& chain) noexcept {
  if (one.kind == Kind::reap) ++counters.expired;
  at.result.changed = at.result.found;
  at.result.version = 0;
  chain.cancel_blocks();
  chain.build_erase(at);
}

/// Under the lock, with the key found: decides, and builds the batch that unlocks the chain.
/// `under_way`: blocks are missing for an entry of so many bytes. `too_long`: nothing is changed.
Status State::build(Change& one, Lookup& at, HeldChain& chain, ChangePlan& plan) {
  at.take_entry(*this);
  ChainBatch& batch = chain.batch();
  std::span<const std::byte> value(batch.entry.data() + kEntryHeadBytes + at.key().size(),
                                   one.value_bytes);
  plan.deed = decide(one, at, value);
  const bool is_too_long = plan.deed == Deed::put && value.size() > kMaxStoreValueBytes;
  if (is_too_long) plan.deed = Deed::keep;
  plan.version = std::max(at.present ? at.head.version : 0, at.version) + 1;
  if (plan.deed == Deed::put && !put_in_place(one, at, chain, value, plan.version)) {
    plan.bytes = entry_bytes(at.key().size(), value.size());
    if (chain.find_blocks(plan.bytes, !at.present && !at.has_vacant) != Status::ok)
      return Status::under_way;
    chain.build_out_of_place(at, plan.bytes);
  }
  if (plan.deed == Deed::erase) erase(one, at, chain);
  build_unlock(one, at, chain, plan);
  return is_too_long ? Status::too_long : Status::ok;
}

/// A chain that has copies has other keys, too, but no version in it is given twice.
void State::build_unlock(const Change& one, const Lookup& at, HeldChain& chain,
                         const ChangePlan& plan) noexcept {
  const bool is_change = plan.deed == Deed::put || plan.deed == Deed::erase;
  const std::uint64_t given = one.is_copy() ? one.version : 0;
  chain.build_unlock(at, is_change ? std::max(plan.version, given) : 0);
}

/// A change at the owner has ended.
void State::note_change(const Lookup& at, HeldChain& chain) noexcept {
  if (!at.result.changed) return;
  if (at.result.version != 0)
    cache.insert(at.hash, chain.batch().slot.word);
  else
    cache.erase(at.hash);
}

Protocol<Status> State::commit(Lookup& at, HeldChain& chain) {
  HeldChain::Commit placed(chain, at.result.round_trips);
  const Status status = co_await placed;
  co_return status;
}

/// One change of a chain, from the lock to the unlocking batch. `ok`: it has ended, with the result
/// in `at`. `changed`: the key has another chain. `busy`: others wait for this chain's lock that
/// hold another. Else why it has changed nothing, or, `lost`, perhaps something.
Protocol<Status> State::change_chain(Change& one, Lookup& at, HeldChain& chain) {
  for (;;) {
    at.locate(*this);
    at.is_locked = false;
    const MappedPart* const there = mapped(at.home);
    if (there == nullptr || !lock_mapped(*there, at, chain)) {
      const Status locked = co_await lock(at, chain, next_lock_word(), one.how_patient());
      if (locked == Status::busy && !one.waits_for_lock()) co_return Status::ok;
      if (locked != Status::ok) co_return locked;
    }
    Status status = Status::ok;
    const MappedPart* const still_there = mapped(at.home);
    if (still_there != nullptr)
      status = find_mapped(*still_there, at);
    else
      status = co_await find(at);
    if (status == Status::changed || status == Status::busy) {
      status = co_await unlock(at, chain, status);
      co_return status;
    }
    if (status != Status::ok) co_return status;
    if (!is_wanted(one, at)) {
      status = co_await unlock(at, chain, one.is_copy() ? Status::conflict : Status::changed);
      co_return status;
    }
    ChangePlan plan;
    const Status built = build(one, at, chain, plan);
    if (built == Status::under_way) {
      status = co_await find_blocks(at, chain, plan.bytes);
      if (status == Status::under_way) continue;  // there is room now, and no lock
      if (status != Status::ok) co_return status;
      chain.build_out_of_place(at, plan.bytes);
      build_unlock(one, at, chain, plan);
    }
    if (plan.deed != Deed::keep && !one.is_copy() && route::has_copies(routes.of(at.hash))) {
      status = co_await complete_with_copies(plan.deed, at, chain, plan.version);
    } else {
      status = co_await commit(at, chain);
    }
    if (status == Status::ok && !one.is_copy()) note_change(at, chain);
    co_return status == Status::ok&& built == Status::too_long ? built : status;
  }
}

/// Calls `find_blocks` of the chain until the blocks are there. `under_way`: a block that was
/// missing has come while the chain was not locked. Those that hold locks of others wait with them:
/// for a second at most.
Protocol<Status> State::find_blocks(Lookup& at, HeldChain& chain, std::size_t bytes) {
  for (;;) {
    if (const Status why = fault(at.home); why != Status::ok) co_return why;
    Status status = chain.find_blocks(bytes, !at.present && !at.has_vacant);
    if (status == Status::ok) co_return status;
    const MissingBlock missing = chain.missing();
    remote::SlabPool& pool = missing.is_large ? *large : *small;
    const bool is_out = status == Status::no_room;
    at.result.changed = false;
    if (is_out && room == nullptr) {
      status = co_await unlock(at, chain, status_without(missing));
      co_return status;
    }
    if (is_out || (at.side == Side::owner && pool.asks(at.home))) {
      status = co_await unlock(at, chain, Status::ok);
      if (status == Status::ok) status = co_await await_room(at, chain);
      co_return status == Status::ok ? Status::under_way : status;
    }
    co_await NextPoll();
    at.result.changed = true;
  }
}

// --- changes at the owner ------------------------------------------------------------------------

/// A change of one key, at its owner, and at the members that have copies, or get one.
Protocol<CallResult> State::change(Change one, Lookup at, HeldChain chain) {
  Rest rest;
  for (;;) {
    const bool is_posted = chain.is_posted();  // by change_at_once()
    Status status = owner_of(at);
    if (is_posted) status = co_await commit(at, chain);
    if (status == Status::busy || status == Status::under_way) status = co_await find_owner(at);
    if (status == Status::ok && !is_posted) status = co_await change_chain(one, at, chain);
    if (status == Status::changed) continue;
    if (status == Status::busy && !one.waits_for_lock()) {  // STO-V4
      at.result.changed = false;
      co_return at.ended(Status::ok);
    }
    if (status == Status::busy) {
      co_await rest.next(fabric, kPausesOfGivingWay);
      continue;
    }
    if (status != Status::lost) co_return at.ended(status);
    status = co_await outlive(at);
    if (status != Status::ok) co_return at.ended(status);
    // STO-C1: the new owner has it already, or nobody has.
    if (chain.is_copied_to(route::owner(routes.of(at.hash)))) co_return at.ended(status);
    chain.begin_anew();
    at.version = UINT64_MAX;
  }
}

/// Does what change() does, as plain steps, where the owner's memory is mapped, the chain is not
/// locked, and there are no copies. False: it has not happened.
bool State::change_at_once(Change& one, Lookup& at, HeldChain& chain) {
  at.route = routes.of(at.hash);
  if (!route::is_open(at.route) || route::has_copies(at.route) || progress.was_stopped())
    return false;
  at.home = route::owner(at.route);
  const MappedPart* const there = usable(at.home);
  if (there == nullptr) return false;
  at.locate(*this);
  if (!lock_mapped(*there, at, chain)) return false;
  ChangePlan plan;
  Status status = find_mapped(*there, at);
  if (status == Status::ok) status = build(one, at, chain, plan);
  if (status == Status::ok) {
    HeldChain::Commit placed(chain, at.result.round_trips);
    const bool is_over = placed.ready();
    if (is_over && placed.result() == Status::ok) {
      note_change(at, chain);
      return true;
    }
    if (!is_over && chain.is_posted()) return false;
  }
  chain.begin_anew();
  at.is_locked = at.result.changed = false;
  at.version = UINT64_MAX;
  return false;
}

StoreOperation State::begin_change(Change one, StoreKey key, std::span<const std::byte> value) try {
  ++counter_of(one.kind);
  Lookup at(*this, Side::owner, key);
  at.is_change = true;
  at.wants_value = one.needs_value();
  if (at.is_too_long || value.size() > kMaxStoreValueBytes)
    return StoreOperation(progress, at.ended(Status::too_long));
  HeldChain chain(*this);
  one.value_bytes = value.size();
  ChainBatch& batch = chain.batch();
  batch.entry.reserve(entry_bytes(at.key().size(), value.size()));
  if (!value.empty())
    std::memcpy(batch.entry.data() + kEntryHeadBytes + at.key().size(), value.data(), value.size());
  if (change_at_once(one, at, chain)) return StoreOperation(progress, at.ended(Status::ok));
  return StoreOperation(progress, change(std::move(one), std::move(at), std::move(chain)));
} catch (const std::bad_alloc&) {
  return StoreOperation(progress, CallResult{.status = Status::no_memory});
}

/// STO-P8. Under the lock of the chain: whether the map, as this process knows it now, has that
/// member in the part in which it was chosen.
bool State::is_wanted(const Change& one, const Lookup& at) const noexcept {
  if (at.side == Side::owner) return routes.of(at.hash) == at.route;
  const PlacedSlot& slot = slot_of(at.hash);
  if (slot.owner == one.first) return slot.is_backup(at.home) || slot.incoming == at.home;
  return slot.former == one.first && slot.has_full_copy(at.home);
}

// --- one chain, for a member that copies keys or empties slots ----------------------------------

/// The chain of a position.
Lookup State::look_at(const ChainCall& call) {
  Lookup at(*this, Side::receiver, std::string_view());
  at.is_change = true;
  at.hash = call.position;
  at.home = call.to;
  return at;
}

Protocol<Status> State::read_header(Lookup& at) {
  auto reading = reading_bucket(at, at.main, sizeof(MainHeader));
  const Status status = co_await reading;
  take_clock(at.home, at.memory().clock);
  co_return status == Status::ok ? take_header(at) : status;
}

/// Locks the chain that has the position by now, and reads its header.
Protocol<Status> State::lock_chain(const ChainCall& call, Lookup& at, HeldChain& chain) {
  for (;;) {
    Status status = co_await find_index(at.home);
    if (status != Status::ok) co_return status;
    at.locate(*this);
    status = co_await lock(at, chain, call.lock_word);
    if (status == Status::ok) status = co_await read_header(at);
    if (status != Status::changed) co_return status;
    status = co_await unlock(at, chain, Status::changed);
    if (status != Status::changed) co_return status;
  }
}

/// Takes the lock of a chain, which the caller has from then on.
Protocol<ChainResult> State::take_chain(ChainCall call) {
  ++counters.others;
  Lookup at = look_at(call);
  HeldChain chain(*this);
  const Status status = co_await lock_chain(call, at, chain);
  if (status != Status::ok) co_return ChainResult{.status = status};
  chain.pass_on();
  co_return ChainResult{.below = end_of_chain(at)};
}

/// No lower version is given in the chain any more. Unlocks it.
Protocol<ChainResult> State::raise_version(ChainCall call) {
  ++counters.others;
  Lookup at = look_at(call);
  HeldChain chain(*this);
  Status status = co_await lock_chain(call, at, chain);
  if (status != Status::ok) co_return ChainResult{.status = status};
  chain.build_unlock(at, std::max(at.version, call.version));
  HeldChain::Commit commit(chain, at.result.round_trips);
  status = co_await commit;
  co_return ChainResult{.status = status, .below = end_of_chain(at)};
}

/// The first position behind the chain.
std::uint64_t State::end_of_chain(const Lookup& at) const noexcept {
  return homes[at.home].shape.end_of(at.position(), static_cast<std::uint32_t>(at.depth));
}

// --- for transactions ----------------------------------------------------------------------------

/// Locks the chain of a key, and finds the key and vacant slots; the transaction has the lock from
/// then on. It takes its locks in one order, so no part of it goes to another member by itself, and
/// it does not wait for a slot to open: that waits for locks. `conflict`: the key has another
/// chain, or another owner.
Protocol<Status> State::hold(TransactionWrite& write, std::uint64_t word, bool is_lent) {
  ++counters.holds;
  auto& [at, chain, call] = write.held.value();
  if (routes.of(at.hash) != write.route) co_return Status::conflict;
  Status status = co_await find_index(at.home);
  if (status != Status::ok) co_return status;
  at.locate(*this);
  if (is_lent) {
    chain.use_lock(at, word, true);
    at.is_locked = true;
  } else {
    status = co_await lock(at, chain, word);
    if (status != Status::ok) co_return status;
  }
  status = co_await find(at);
  if (status == Status::changed || status == Status::busy) co_return Status::conflict;
  if (status == Status::ok) at.take_entry(*this);
  co_return status;
}

}  // namespace dunlin::store
