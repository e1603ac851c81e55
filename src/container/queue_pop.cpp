#include <algorithm>
#include <string>

#include "assert.hpp"
#include "container/queue.hpp"
#include "remote/control_channel.hpp"

/// One-sided pops: docs/container.md has the protocols.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

/// A pop reads slots ahead of where it knows the head: twice as far as others have moved that
/// lately, and some more, as they may move it while the read is under way. At most so many bytes:
/// on a network of 100 Gbit/s they take a tenth of the round trip that they save.
constexpr std::uint32_t kMostBytesAhead = 2048;
constexpr std::uint32_t kFewBytesAhead = 256;

std::uint32_t slots_ahead(const QueueState& queue) noexcept {
  const std::uint32_t most = kMostBytesAhead / queue.shape.slot_bytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      most, 2 * queue.head_moved + kFewBytesAhead / queue.shape.slot_bytes));
}

std::uint64_t until(const Fabric& fabric, std::uint64_t wait_ns) noexcept {
  const std::uint64_t now = wait_ns > 0 ? fabric.now_ns() : 0;
  return wait_ns > 0 && wait_ns < remote::kForever - now ? now + wait_ns : remote::kForever;
}

/// What a slot has for a ticket that a pop has taken.
enum class Taken : std::uint8_t { element, nothing, not_yet, overwritten };

/// CON-Q7: the first word may be a later mark, as marks leave the rest as it was.
Taken look_at(const SlotShape& shape, const std::byte* slot, std::uint64_t ticket) noexcept {
  const std::uint64_t word = word_at(slot), wanted = ticket + 1;
  const bool is_later = turn_of(word) > wanted;
  if ((word == wanted || (is_later && is_mark(word))) && has_stamps(shape, slot, wanted))
    return Taken::element;
  if (is_mark(word) && turn_of(word) >= wanted) return Taken::nothing;
  return is_later ? Taken::overwritten : Taken::not_yet;
}

}  // namespace

QueueCall::QueueCall(QueueState& queue, const std::byte* elements, std::uint32_t many,
                     const QueueTerms& its_terms) noexcept
    : terms(its_terms),
      pushes(elements != nullptr),
      wanted(pushes ? many : std::min(many, queue.spec.capacity)),
      slots(pushes ? wanted : std::min(wanted + slots_ahead(queue), queue.spec.capacity)),
      patience(queue.hub.fabric, until(queue.hub.fabric, terms.wait_ns)),
      rests(queue.hub),
      memory(queue.memory_of_calls, std::size_t{slots} * queue.shape.slot_bytes +
                                        std::size_t{wanted} * queue.spec.element_bytes),
      images(memory.data()),
      payload(images == nullptr ? nullptr : images + std::size_t{slots} * queue.shape.slot_bytes) {
  if (pushes && images != nullptr)
    std::memcpy(payload, elements, std::size_t{wanted} * queue.spec.element_bytes);
}

Protocol<Status> QueueState::read_slots(QueueCall& call, std::uint64_t ticket, std::uint32_t count,
                                        Ends* ends) {
  DUNLIN_ASSERT(count <= call.slots, "CON-Q1: a pop reads what its memory has room for");
  const std::uint32_t before_end = std::min(count, slots_before_end(ticket));
  const std::size_t first_bytes = std::size_t{before_end} * shape.slot_bytes;
  remote::Batch<3, PatientGate> batch(hub.fabric,
                                      PatientGate{site.gate(spec.host), &call.patience});
  if (ends != nullptr) batch.add(read_ends(*ends));
  batch.add(read(spec.host, site.region(), offset_of(ticket), call.images, first_bytes));
  if (before_end < count)
    batch.add(read(spec.host, site.region(), kQueueSlots, call.images + first_bytes,
                   std::size_t{count - before_end} * shape.slot_bytes));
  const Status status = co_await batch;
  if (status == Status::ok && ends != nullptr) saw(*ends);
  co_return status;
}

// --- beside any calls ----------------------------------------------------------------------------

/// The member whose compare-and-swap moves the head has the elements, which it has read already.
/// Where others move it, the first read brings the ends, too. Slots with their turn stay as they
/// are until the head has passed them, so a call that comes too late reads none of them again.
Protocol<Status> QueueState::pop(QueueCall& call) {
  ++counters.one_sided;
  std::uint64_t from = 0;   // the tickets whose slots it has read:
  std::uint32_t count = 0;  // so many
  bool asks_ends = head_moved > 0;
  for (;;) {
    std::uint64_t ticket = seen_head;
    const bool is_new = ticket - from >= count;
    bool has_ends = false;
    if (is_new) {
      from = ticket;
      count = std::min(call.slots, slots_before_end(from));
      Ends ends;
      has_ends = asks_ends;
      const Status status = co_await read_slots(call, from, count, has_ends ? &ends : nullptr);
      if (status != Status::ok) co_return status;
      if (has_ends) head_moved = seen_head - from;
      asks_ends = false;
      if (seen_head != from && has_ends) continue;
    }

    std::uint32_t found = 0;
    bool skips = false;
    const auto ahead = static_cast<std::uint32_t>(ticket - from);
    const auto slot = [&](std::uint32_t i) {
      return call.images + std::size_t{ahead + i} * shape.slot_bytes;
    };
    const std::uint32_t most = std::min(call.wanted, count - ahead);
    while (found < most && !skips) {
      const std::uint64_t stamp = ticket + found + 1;
      skips = found == 0 && word_at(slot(0)) == (stamp | kSkip);
      if (word_at(slot(found)) != stamp || !is_whole(shape, slot(found))) break;
      ++found;
    }

    if (found > 0 || skips) {
      const std::uint64_t behind = ticket + (skips ? 1 : found);
      std::uint64_t before = 0;
      const Status status = co_await post(
          site, compare_swap(spec.host, site.region(), kHeadOffset, ticket, behind, &before));
      if (status != Status::ok) co_return status;
      const bool moved = before == ticket;
      if (!moved) head_moved = std::max(head_moved, before - ticket);
      if (moved) saw(behind, behind);
      if (!moved && before <= seen_tail) saw(0, before);
      if (moved && !skips) {
        DUNLIN_ASSERT(found <= call.wanted, "CON-Q1: the head passes what this call has read");
        for (std::uint32_t i = 0; i < found; ++i)
          decode(shape, slot(i), 0, spec.element_bytes,
                 call.payload + std::size_t{i} * spec.element_bytes);
        call.count = found;
        co_return Status::ok;
      }
      if (moved || before <= seen_tail) continue;
    } else if (!is_new) {  // it was read too early
      count = 0;
      continue;
    }

    count = 0;
    if (!has_ends) {
      const Status status = co_await look(call.patience);
      if (status != Status::ok) co_return status;
      head_moved = seen_head - ticket;
    }
    if (seen_head == ticket && seen_tail == ticket) {
      if (!call.waits_after(Status::empty)) co_return Status::empty;
      co_await call.rest(kLongestRestNs);
    } else if (seen_head == ticket) {
      co_await call.rest(kShortRestNs);  // another member fills the slot
    }
  }
}

// --- beside no pushes (CON-Q7) -------------------------------------------------------------------

/// Takes tickets by a fetch-and-add, which never fails, and then reads their slots.
Protocol<Status> QueueState::pop_taken(QueueCall& call) {
  ++counters.one_sided;
  for (;;) {
    if (seen_head >= seen_tail) {
      const Status status = co_await look(call.patience);
      if (status != Status::ok) co_return status;
      if (seen_head >= seen_tail) co_return Status::empty;
    }
    HeldTickets taken(*this, call);
    protocols.start(take_head(taken, std::min<std::uint64_t>(call.wanted, seen_tail - seen_head)));
    if (taken.reservation != nullptr) co_await Until([&] { return taken.reservation == nullptr; });
    if (taken.status == Status::busy) break;  // the membership has changed
    if (taken.status != Status::ok) co_return taken.status;
    if (taken.tickets.count == 0) co_return Status::empty;
    const Status status = co_await read_taken(call, taken.tickets);
    if (status != Status::ok || call.count > 0) co_return status;
  }
  const Status status = co_await pop(call);
  co_return status;
}

/// Nobody waits for this one, so what it takes too much is given back also if the call has been
/// given up. The tail stays as it is, so of all tickets that pops take, those below the tail are
/// taken once.
Protocol<Status> QueueState::take_head(HeldTickets& holder, std::uint64_t count) {
  Reservation taken(*this, holder, count);
  Tickets& tickets = taken.tickets;
  Status status = co_await remote::post(
      hub.fabric, fetch_add(spec.host, site.region(), kHeadOffset, count, &tickets.first),
      Reservation::Gate{site.gate(spec.host), &taken});
  if (status == Status::ok && tickets.first + count > seen_tail) {
    Ends ends;
    status = co_await post(site, read_ends(ends));
    const std::uint64_t tail = ends.tail();
    if (status == Status::ok) {
      saw(ends);
      tickets.count = tickets.first < tail ? std::min(count, tail - tickets.first) : 0;
    }
    if (status == Status::ok && tickets.count < count)
      status = co_await post(
          site, fetch_add(spec.host, site.region(), kHeadOffset, tickets.count - count, nullptr));
  }
  if (status == Status::ok && tickets.count > 0) saw(0, tickets.first + tickets.count);
  taken.end(status);
  co_return status;
}

Protocol<Status> QueueState::read_taken(QueueCall& call, Tickets taken) {
  const auto count = static_cast<std::uint32_t>(taken.count);
  for (;;) {
    const Status status = co_await read_slots(call, taken.first, count, nullptr);
    if (status != Status::ok) co_return status;
    bool all = true;
    call.count = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const slot = call.images + std::size_t{i} * shape.slot_bytes;
      const Taken has = look_at(shape, slot, taken.first + i);
      if (has == Taken::element)
        decode(shape, slot, 0, spec.element_bytes,
               call.payload + std::size_t{call.count++} * spec.element_bytes);
      if (has == Taken::not_yet) all = false;
      if (has == Taken::overwritten) {
        hub.broken_promise = "queue '" + spec.name +
                             "': a push has come between the steps of a pop "
                             "with the promise '" +
                             std::string(name_of(call.terms.promise)) + "'";
        co_return Status::broken_promise;
      }
    }
    if (all) co_return Status::ok;
    co_await call.rest(kShortRestNs);  // a ticket without an element gets its mark
  }
}

}  // namespace dunlin::container
