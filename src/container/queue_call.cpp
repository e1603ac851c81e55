#include <algorithm>
#include <array>
#include <cstring>

#include "assert.hpp"
#include "container/load_estimate.hpp"
#include "container/queue.hpp"
#include "remote/control_channel.hpp"

/// Pushes and pops: docs/container.md has the protocols.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

Protocol<PoppedElements> QueueState::run(const std::byte* elements, std::uint32_t count,
                                         QueueTerms terms) {
  if (count == 0) co_return PoppedElements{};
  QueueCall call(*this, elements, count, terms);
  if (call.images == nullptr) co_return PoppedElements{{Status::no_memory}};
  Announcement mine(checker.get(), spec.host, {call.pushes ? 0U : 1U, terms.promise},
                    call.patience.until_ns());
  Status status = Status::ok;
  if (mine.needed()) status = co_await mine.make();
  if (status == Status::ok) status = site.fault(spec.host);
  if (status == Status::ok) {
    if (works_directly(terms.promise) || waits_where_mapped(terms))
      status = co_await work_directly(call);
    else if (!is_host() && style_of(call) == Style::message)
      status = co_await work_by_message(call);
    else if (call.pushes)
      status = co_await push(call);
    else if (takes_head(call.terms))
      status = co_await pop_taken(call);
    else
      status = co_await pop(call);
  }
  if (mine.needed()) static_cast<void>(co_await mine.retract());
  co_return PoppedElements{{status, call.count, call.vain_attempts},
                           spec.element_bytes,
                           call.payload,
                           std::move(call.memory)};
}

Style QueueState::style_of(const QueueCall& call) noexcept {
  if (spec.style == Style::message) return Style::message;
  const std::uint64_t pushed = call.pushes ? call.wanted : 1;  // all in one message, or none
  if (!coherent || pushed * spec.element_bytes > kMaxMessageBytes - kMessageHeader)
    return Style::one_sided;
  const Style wanted = call.terms.style != Style::automatic ? call.terms.style : spec.style;
  if (wanted != Style::automatic) return wanted;
  return hub.cheaper_style(styles, call.pushes ? Call::push : Call::pop,
                           {.promise = call.terms.promise,
                            .clients = clients_of_host(hub.present),
                            .bytes = static_cast<double>(shape.slot_bytes) * call.wanted,
                            .count = static_cast<double>(call.wanted)},
                           spec.host);
}

/// Whether a call that waits looks at the queue itself. By message it would wait for the host at
/// each look, and a host that sleeps, or that has no processor, answers late.
bool QueueState::waits_where_mapped(const QueueTerms& terms) noexcept {
  return terms.wait_ns > 0 && checker == nullptr && mapped(terms) != nullptr;
}

/// With the processor: the host's own calls, and calls that wait where the queue is mapped.
Protocol<Status> QueueState::work_directly(QueueCall& call) {
  while (!call.patience.is_over()) {
    if (const Status fault = site.fault(spec.host); fault != Status::ok) co_return fault;
    std::uint32_t count = call.wanted;
    const Status status =
        at_once(call.pushes ? call.payload : nullptr, call.payload, count, call.terms);
    if (status == Status::under_way) {  // another call is in the way
      co_await call.rest(kShortRestNs);
      continue;
    }
    call.count = status == Status::ok ? count : 0;
    if (!call.waits_after(status)) co_return status;
    const std::byte* const queue = mapped(call.terms);
    if (queue != nullptr)
      co_await QueuePause(*this, queue, call);
    else
      co_await call.rest(kLongestRestNs);
  }
  co_return Status::timed_out;
}

QueuePause::QueuePause(QueueState& queue, const std::byte* memory, QueueCall& call) noexcept
    : queue_(queue),
      end_(*reinterpret_cast<const std::uint64_t*>(memory +
                                                   (call.pushes ? kHeadOffset : kTailOffset))),
      seen_(call.pushes ? queue.seen_head : queue.seen_tail),
      mapped_in_(queue.hub.fabric.disconnections()),
      pause_(call.rest(kLongestRestNs)) {
  ++queue_.waiting_in_memory;
}

bool QueuePause::ready() noexcept {
  if (mapped_in_ != queue_.hub.fabric.disconnections() || memory::load(end_) > seen_) {
    pause_.end();
    return true;
  }
  return pause_.ready();
}

/// A push of more than a message holds goes on with the next message.
Protocol<Status> QueueState::work_by_message(QueueCall& call) {
  ++counters.by_message;
  const std::size_t bytes = spec.element_bytes;
  const auto most = static_cast<std::uint32_t>((kMaxMessageBytes - kMessageHeader) / bytes);
  for (;;) {
    const std::uint32_t some = std::min(most, call.wanted - call.count);
    const std::span elements(call.payload + call.count * bytes, some * bytes);
    const MessageHead head{.container = site.id(),
                           .word = some,
                           .operation = static_cast<std::uint8_t>(call.pushes ? 0 : 1)};
    Asked asked(hub, site, spec.host, head, elements.first(call.pushes ? elements.size() : 0),
                elements.first(call.pushes ? 0 : elements.size()),
                call.count == 0 ? call.patience.until_ns() : remote::kForever);
    const Reply reply = co_await asked;
    Status status = reply.status;
    if (status == Status::busy) {
      co_await call.rest(kShortRestNs);
      continue;
    }
    if (status == Status::ok) {
      call.count += call.pushes ? some : static_cast<std::uint32_t>(reply.bytes / bytes);
      if (call.pushes && call.count < call.wanted) continue;
      if (call.count == 0) status = Status::empty;
    }
    if (!call.waits_after(status)) co_return status;
    co_await call.rest(kLongestRestNs);
  }
}

// --- one-sided -----------------------------------------------------------------------------------

/// CON-Q8: the host has expelled all that are gone, by what an earlier look has read.
Protocol<Status> QueueState::look(const Patience& patience) {
  const std::uint64_t here = hub.progress.generation();
  const bool are_expelled = expelled_in >= here;
  Ends ends;
  const Status status = co_await remote::post(hub.fabric, read_ends(ends),
                                              PatientGate{site.gate(spec.host), &patience});
  if (status != Status::ok) co_return status;
  saw(ends);
  expelled_in = std::max(expelled_in, ends.generation());
  if (ends.generation() != here) may_take_head = false;
  if (are_expelled && ends.tail() >= ends.head()) mended_in = here;
  co_return status;
}

/// Nobody waits for this one, so the tickets are known also if the call has been given up.
Protocol<Status> QueueState::reserve(HeldTickets& holder) {
  Reservation reservation(*this, holder, holder.call.wanted);
  const Status status =
      co_await remote::post(hub.fabric,
                            fetch_add(spec.host, site.region(), kTailOffset,
                                      reservation.tickets.count, &reservation.tickets.first),
                            Reservation::Gate{site.gate(spec.host), &reservation});
  reservation.end(status);
  co_return status;
}

/// CON-Q4: the tail is at least what was known before the head was read.
Protocol<Status> QueueState::push(QueueCall& call) {
  ++counters.one_sided;
  Status status = Status::ok;
  while (!is_mended() || !has_room(seen_tail, call.wanted)) {
    const std::uint64_t known_tail = seen_tail;
    status = co_await look(call.patience);
    if (status != Status::ok) co_return status;
    if (!is_mended()) {
      co_await call.rest(kShortRestNs);
      continue;
    }
    if (has_room(known_tail, call.wanted)) continue;
    if (!call.waits_after(Status::full)) co_return Status::full;
    co_await call.rest(kLongestRestNs);
  }

  HeldTickets held(*this, call);
  protocols.start(reserve(held));
  if (held.reservation != nullptr) co_await Until([&] { return held.reservation == nullptr; });
  if (held.status != Status::ok) co_return held.status;
  const std::uint64_t ticket = held.tickets.first;
  saw(ticket + call.wanted, 0);
  // What was known may have been old. Pops may be waiting for this call, so it rests shortly.
  while (!has_room(ticket, call.wanted)) {
    status = co_await look(call.patience);
    if (status != Status::ok) co_return status;
    if (has_room(ticket, call.wanted)) break;
    if (!call.waits_after(Status::full)) co_return Status::full;
    co_await call.rest(kShortRestNs);
  }

  DUNLIN_ASSERT(has_room(ticket, call.wanted),
                "CON-Q2: no slot is written before the head has passed its former ticket");
  for (std::uint32_t i = 0; i < call.wanted; ++i)
    encode(shape, call.payload + std::size_t{i} * spec.element_bytes, ticket + i + 1,
           call.images + std::size_t{i} * shape.slot_bytes);
  const auto at = static_cast<std::uint32_t>(ticket % spec.capacity);
  const std::uint32_t before_end = std::min(call.wanted, spec.capacity - at);
  const std::size_t first_bytes = std::size_t{before_end} * shape.slot_bytes;
  struct Gate : SiteGate {
    HeldTickets* held;
    std::uint32_t before_end;
    void accepted(std::size_t writes) const noexcept {
      if (writes > 0) held->filled = writes == 1 ? before_end : held->tickets.count;
    }
  };
  remote::Batch<2, Gate> slots(hub.fabric, Gate{site.gate(spec.host), &held, before_end});
  slots.add(write(spec.host, site.region(), offset_of(ticket), call.images, first_bytes));
  if (before_end < call.wanted)
    slots.add(write(spec.host, site.region(), kQueueSlots, call.images + first_bytes,
                    std::size_t{call.wanted - before_end} * shape.slot_bytes));
  status = co_await slots;
  if (status == Status::ok) call.count = call.wanted;
  co_return status;
}

// --- tickets that a call holds -------------------------------------------------------------------

HeldTickets::HeldTickets(QueueState& its_queue, QueueCall& its_call)
    : queue(its_queue), call(its_call), place(queue.holders.size()) {
  queue.expect_orphans();
  queue.holders.push_back(this);
  ++queue.may_be_orphans;
}

HeldTickets::~HeldTickets() {
  DUNLIN_ASSERT(queue.holders[place] == this && filled <= tickets.count,
                "CON-Q3: a push has its tickets once, and fills no others");
  --queue.may_be_orphans;
  queue.holders[place] = queue.holders.back();
  queue.holders[place]->place = place;
  queue.holders.pop_back();
  if (reservation != nullptr) reservation->holder = nullptr;
  if (call.pushes) queue.take_orphans({tickets.first + filled, tickets.count - filled});
}

Reservation::Reservation(QueueState& its_queue, HeldTickets& its_holder, std::uint64_t count)
    : queue(its_queue), pushes(its_holder.call.pushes), holder(&its_holder), tickets{0, count} {
  queue.expect_orphans();
  ++queue.may_be_orphans;
  holder->reservation = this;
}

Reservation::~Reservation() {
  DUNLIN_ASSERT(holder == nullptr || holder->reservation == this,
                "CON-Q3: holder and reservation know each other");
  --queue.may_be_orphans;
  if (posted) --queue.reserving;
  if (holder != nullptr) holder->reservation = nullptr;
}

void Reservation::end(Status status) noexcept {
  if (holder != nullptr) {
    holder->status = status;
    if (status == Status::ok) holder->tickets = tickets;
  } else if (status == Status::ok && pushes) {
    queue.take_orphans(tickets);
  }
}

/// None begins while the host waits to hear which tickets this member has.
Status Reservation::Gate::now() const noexcept {
  if (reservation->holder == nullptr) return Status::abandoned;
  if (const Status fault = site.now(); fault != Status::ok) return fault;
  if (reservation->holder->call.patience.is_over()) return Status::timed_out;
  const QueueState& its_queue = reservation->queue;
  if (!reservation->pushes) return its_queue.may_take_head ? Status::ok : Status::busy;
  return its_queue.host_waits || its_queue.collecting ? Status::under_way : Status::ok;
}

void Reservation::Gate::posted() const noexcept {
  reservation->posted = true;
  ++reservation->queue.reserving;
}

}  // namespace dunlin::container
