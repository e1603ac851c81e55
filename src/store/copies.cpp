#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "store/change.hpp"
#include "store/held_chain.hpp"
#include "store/state.hpp"

/// The copies that a change makes at other members: at those that have a copy of the key's slot,
/// and at one that gets a copy.
namespace dunlin::store {

using remote::NextPoll;
using remote::Protocol;
using remote::Status;

namespace {

/// For the lock at a copy, by a change that others have already, before it is taken back there.
constexpr std::uint32_t kMostLongWaits = 8;
/// Room comes seldom.
constexpr std::uint64_t kPausesWithoutRoom = 64;

}  // namespace

/// The member that has a copy, or gets one, and is next; a member that gets one is the last. It may
/// have become the owner since the change began. kNobody: there is no other.
Rank State::next_copy(const Lookup& at, Deed deed, std::span<const Rank> done) const noexcept {
  const PlacedSlot& slot = slot_of(at.hash);
  const auto is_next = [&](Rank rank) {
    return rank != kNobody && rank != at.home && std::ranges::find(done, rank) == done.end();
  };
  if (deed != Deed::copy)
    for (const Rank rank : {slot.backups[0], slot.backups[1], slot.owner})
      if (is_next(rank)) return rank;
  return is_next(slot.incoming) ? slot.incoming : kNobody;
}

/// As the key is at the owner, under the lock: with the change that is prepared there, or as it is.
Copy State::copy_of(Deed deed, const Lookup& at, HeldChain& chain, std::uint64_t version,
                    Rank to) const noexcept {
  const bool as_it_is = deed == Deed::copy || deed == Deed::align;
  Copy copy{.to = to,
            .first = at.home,
            .key = at.key(),
            .erases = deed == Deed::erase || (as_it_is && !at.result.found),
            .version = version,
            .patience = {.attempts = kManyAttempts, .lower_than = at.home, .attempts_at_lower = 3}};
  std::uint64_t expiry_ns = at.head.expiry_ns;
  if (as_it_is) {
    copy.value = at.result.value;
    if (at.result.found) copy.version = at.head.version;
  } else {
    const EntryHead head = head_of(chain.batch().entry.data());
    const std::byte* const value = chain.batch().entry.data() + kEntryHeadBytes + at.key().size();
    if (deed == Deed::put) copy.value = {value, head.value_bytes};
    expiry_ns = head.expiry_ns;
  }
  if (!copy.erases && expiry_ns != 0)
    copy.ttl_ns = std::max<std::uint64_t>(ttl_of(at.home, expiry_ns), 1);
  return copy;
}

/// The batch for the owner is ready, under the lock of the key's chain there. `ok`: all copies have
/// the change. `lost`: the owner is gone. Else no copy has it. A member that gets a copy and has no
/// room, or whose chain is locked for long, gets none: that is no reason for a change to fail.
Protocol<Status> State::replicate(Deed deed, Lookup& at, HeldChain& chain, std::uint64_t version) {
  Rest rest;
  std::uint32_t waits = 0;
  for (;;) {
    if (const Status why = fault(at.home); why != Status::ok) co_return why;
    const PlacedSlot& slot = slot_of(at.hash);
    if (slot.owner != at.home && slot.former != at.home) co_return Status::lost;
    const Rank to = next_copy(at, deed, chain.copies());
    if (to == kNobody) co_return Status::ok;
    const bool is_first = chain.copies().empty();
    const Decision stop{.kind = Decision::Kind::stop,
                        .slot = static_cast<std::uint16_t>(map().slot_of(at.hash)),
                        .epoch = slot.epoch};
    const bool is_incoming = slot.incoming == to;
    Copy copy = copy_of(deed, at, chain, version, to);
    if (!is_first) copy.patience = {.attempts = kManyAttempts};
    const Status end = co_await copy_key(copy);
    if (end == Status::ok) {
      chain.copied(to);
      continue;
    }
    // It has no copy any more, as the map says or will say; or one that others hold locked.
    const bool goes_on =
        end == Status::conflict || end == Status::lost ||
        (end == Status::busy && !is_first && !is_incoming && ++waits <= kMostLongWaits);
    if (!goes_on && (!is_incoming || (end == Status::busy && is_first) || placement == nullptr)) {
      // Else the new owner, of which it is known whether it has the change, has it for good.
      const Status taken_back = co_await take_back(at, chain);
      co_return taken_back == Status::ok ? end : Status::lost;
    }
    if (!goes_on) {
      Decision decision = stop;
      decision.flag = end == Status::busy ? 0 : 1;
      placement->say(decision);
      while (slot_of(at.hash).epoch == stop.epoch && fault(at.home) == Status::ok &&
             placement->why_stopped().empty())
        co_await rest.next(fabric);
    }
    co_await rest.next(fabric);
  }
}

/// Some copies have the change, and the owner does not get it: they get what the owner has.
Protocol<Status> State::take_back(const Lookup& at, HeldChain& chain) {
  if (chain.copies().empty()) co_return Status::ok;
  Lookup now(*this, Side::owner, at.key());
  now.is_change = now.is_locked = now.wants_value = true;
  now.home = at.home;
  now.locate(*this);
  if (const Status status = co_await find(now); status != Status::ok) co_return status;
  now.take_entry(*this);
  Rest rest;
  const std::vector<Rank> copies(chain.copies().begin(), chain.copies().end());
  for (const Rank to : copies) {
    Status status = Status::busy;
    while (status == Status::busy) {
      Copy copy = copy_of(Deed::align, now, chain, now.version, to);
      copy.patience = {.attempts = kManyAttempts};
      status = co_await copy_key(copy);
      if (status == Status::busy) co_await rest.next(fabric);
    }
    if (status != Status::ok && fault(at.home) != Status::ok) co_return Status::lost;
  }
  co_return Status::ok;
}

/// STO-C1. From its first copy on, the change does not need its caller.
Protocol<Status> State::complete_with_copies(Deed deed, Lookup& at, HeldChain& chain,
                                             std::uint64_t version) {
  const auto work = std::make_shared<CopiedChange>(CopiedChange{
      .deed = deed, .version = version, .at = std::move(at), .chain = std::move(chain)});
  if (!completing.start(complete(work))) work->status = Status::no_memory;
  while (work->status == Status::under_way) co_await NextPoll();
  at = std::move(work->at);
  chain = std::move(work->chain);
  co_return work->status;
}

Protocol<Status> State::complete(std::shared_ptr<CopiedChange> work) {
  Lookup& at = work->at;
  HeldChain& chain = work->chain;
  Status status = co_await replicate(work->deed, at, chain, work->version);
  if (status == Status::ok) {
    status = co_await commit(at, chain);
  } else if (status != Status::lost) {
    chain.drop_batch();
    status = co_await unlock(at, chain, status);
  }
  work->status = status;
  co_return Status::ok;
}

/// For a key of a slot that this member owns, or owned: gives the copies what is here, or takes
/// from them what is not. A copy that has no room for it is waited for: it would not be a full one.
Protocol<Status> State::align_key(std::span<const std::byte> key) {
  Rest rest;
  Status status = Status::busy;
  while (status == Status::busy || status == Status::changed || status == Status::no_room) {
    Lookup at(*this, Side::owner, key);
    HeldChain chain(*this);
    at.is_change = at.wants_value = true;
    at.home = fabric.rank();
    const PlacedSlot& slot = slot_of(at.hash);
    if (slot.owner != at.home && slot.former != at.home) co_return Status::ok;
    at.locate(*this);
    status = co_await lock(at, chain, next_lock_word(), {});
    if (status == Status::ok) status = co_await find(at);
    if (status == Status::ok) {
      at.take_entry(*this);
      chain.build_unlock(at, 0);
      status = co_await complete_with_copies(Deed::align, at, chain, at.version);
    } else if (at.is_locked) {
      status = co_await unlock(at, chain, status);
    }
    if (status == Status::no_room) co_await rest.next(fabric, kPausesWithoutRoom);
    if (status == Status::busy) co_await rest.next(fabric);
  }
  co_return status;
}

/// Makes a key at another member what it is to be there.
Protocol<Status> State::copy_key(Copy copy) {
  ++counters.others;
  Lookup at(*this, Side::copy, copy.key);
  at.is_change = true;
  at.home = copy.to;
  HeldChain chain(*this);
  Change one{.kind = copy.erases ? Kind::copy_erase : Kind::copy_put,
             .value_bytes = copy.value.size(),
             .ttl_ns = copy.ttl_ns,
             .version = copy.version,
             .first = copy.first,
             .patience = copy.patience};
  Image& entry = chain.batch().entry;
  entry.reserve(entry_bytes(at.key().size(), copy.value.size()));
  std::byte* const value = entry.data() + kEntryHeadBytes + at.key().size();
  if (!copy.value.empty()) std::memcpy(value, copy.value.data(), copy.value.size());
  Status status = Status::changed;
  while (status == Status::changed) {
    status = co_await find_index(at.home);
    if (status == Status::ok) status = co_await change_chain(one, at, chain);
  }
  co_return status;
}

}  // namespace dunlin::store
