#include <algorithm>
#include <cstring>

#include "container/load_estimate.hpp"
#include "container/queue.hpp"
#include "fault_injection.hpp"

/// A push or pop, step by step.
namespace dunlin::container {

using remote::Status;

namespace {

constexpr int kQueueStepsAtOnce = 4096;

}  // namespace

QueueOperation::QueueOperation(QueueCore& queue) noexcept
    : ContainerOperation(queue.state_->hub), queue_(*queue.state_) {
  if (queue_.checker != nullptr) check_ = queue_.checker->make_check();
}

void QueueOperation::begin_push(std::uint32_t count, Promise promise, Style style,
                                std::uint64_t wait_ns) noexcept {
  begin(true, count, promise, style, wait_ns);
}
void QueueOperation::begin_pop(std::uint32_t most, Promise promise, Style style,
                               std::uint64_t wait_ns) noexcept {
  begin(false, most, promise, style, wait_ns);
}

void QueueOperation::begin(bool pushes, std::uint32_t count, Promise promise, Style style,
                           std::uint64_t wait_ns) noexcept {
  abandon();
  wait_until_ns_ = 0;
  forget_rests();
  vain_attempts_ = 0;
  if (wait_ns > 0) {
    const std::uint64_t now = hub_.fabric.now_ns();
    wait_until_ns_ = wait_ns < remote::kForever - now ? now + wait_ns : remote::kForever;
  }
  pushes_ = pushes;
  wanted_ = count;
  promise_ = promise;
  style_ = style;
  queue_.begin(*this);
  if (check_ != nullptr) begin_check(queue_.spec.host, pushes ? 0 : 1, promise);
  start();
}

void QueueOperation::refuse(Status status) noexcept {
  stage_ = Stage::done;
  count_ = 0;
  end(status);
}

void QueueOperation::advance() noexcept {
  if (check_ != nullptr) {
    if (check_not_begun() && expired()) return end(Status::timed_out);
    if (!passes_check()) return;
  }
  queue_.advance(*this);
}

/// Until then, the fabric polls no later.
bool QueueOperation::expired() const noexcept {
  if (wait_until_ns_ == 0 || wait_until_ns_ == remote::kForever) return false;
  if (hub_.fabric.now_ns() >= wait_until_ns_) return true;
  hub_.fabric.wake_at(wait_until_ns_);
  return false;
}

void QueueOperation::clean_up() noexcept {
  queue_.clean_up(*this);
  if (check_ != nullptr) give_up_check();
}

/// A push of more than a message holds goes on with the next message.
void QueueOperation::replied(Status status, bool, std::span<const std::byte> content) noexcept {
  if (status == Status::busy) {
    stage_ = Stage::ask;
    hub_.look_again_soon();
    return;
  }
  const std::uint32_t bytes = queue_.spec.element_bytes;
  answer_ = status;
  stage_ = Stage::done;
  if (status != Status::ok) return;
  if (pushes_) {
    count_ += asked_for_;
    if (count_ < wanted_) stage_ = Stage::ask;
  } else {
    count_ = std::min(static_cast<std::uint32_t>(content.size() / bytes), asked_for_);
    std::memcpy(elements_, content.data(), std::size_t{count_} * bytes);
    if (count_ == 0) answer_ = Status::empty;
  }
}

void QueueState::begin(QueueOperation& op) noexcept {
  op.posted_ = 0;
  op.answered_ = false;
  op.answer_ = Status::ok;
  op.has_tickets_ = false;
  op.count_ = 0;
  op.reservation_ = nullptr;
  op.stage_ = Stage::choose;
}

/// CON-Q5: a call that has waited long enough ends where it has done nothing, or has only tickets,
/// which are marked then.
void QueueState::advance(QueueOperation& op) noexcept {
  const bool has_done_nothing = op.stage_ == Stage::choose || op.stage_ == Stage::ask ||
                                op.stage_ == Stage::look || op.stage_ == Stage::reserve ||
                                op.stage_ == Stage::get || op.stage_ == Stage::rest;
  if (has_done_nothing && op.count_ == 0 && op.expired()) return op.finish(Status::timed_out);
  for (int steps = 0; steps < kQueueStepsAtOnce; ++steps) {
    if (op.completion_.failed()) return op.finish(Status::lost);
    if (!step(op)) return;
  }
  hub.look_again_soon();
}

bool QueueState::step(QueueOperation& op) noexcept {
  switch (op.stage_) {
    case Stage::choose:
      return choose(op);
    case Stage::ask:
      return ask(op);
    case Stage::asked:
      static_cast<void>(fails(op));
      return false;
    case Stage::look:
      return look(op);
    case Stage::looked:
      return looked(op);
    case Stage::reserve:
      return reserve(op);
    case Stage::reserved:
      return reserved(op);
    case Stage::room:
      op.stage_ = has_room(op.ticket_ + op.wanted_ - 1) ||
                          is_injected(FaultInjection::slot_without_room_is_filled)
                      ? Stage::fill
                      : Stage::look;
      return true;
    case Stage::fill:
      return fill(op);
    case Stage::get:
      return get(op);
    case Stage::got:
      return got(op);
    case Stage::take:
      return take(op);
    case Stage::taken:
      return taken(op);
    case Stage::rest:
      return rested(op);
    case Stage::done:
      if (op.answer_ == Status::full || op.answer_ == Status::empty) {
        find_none(op, op.answer_, Stage::ask);
        return false;
      }
      if (op.answer_ == Status::ok && op.pushes_) op.count_ = op.wanted_;
      op.finish(op.answer_);
      return false;
  }
  return false;
}

bool QueueState::fails(QueueOperation& op) noexcept {
  const Status fault = site.fault(spec.host);
  if (fault != Status::ok) op.finish(fault);
  return fault != Status::ok;
}

void QueueState::find_none(QueueOperation& op, Status status, Stage next) noexcept {
  if (op.wait_until_ns_ == 0) return op.finish(status);
  ++op.vain_attempts_;
  op.count_ = 0;
  // With tickets in hand, pops may be waiting for this call.
  rest(op, op.has_tickets_ ? kShortRestNs : kLongestRestNs, next);
}

void QueueState::rest(QueueOperation& op, std::uint64_t longest_ns, Stage next) noexcept {
  op.begin_rest(longest_ns);
  op.after_rest_ = next;
  op.stage_ = Stage::rest;
}

bool QueueState::rested(QueueOperation& op) noexcept {
  if (op.rests()) return false;
  op.stage_ = op.after_rest_;
  return true;
}

bool QueueState::choose(QueueOperation& op) noexcept {
  if (!op.pushes_) op.wanted_ = std::min(op.wanted_, spec.capacity);
  if (op.wanted_ == 0 || op.wanted_ > spec.capacity ||
      op.image_.size() < std::size_t{op.wanted_} * shape.slot_bytes) {
    op.finish(op.wanted_ == 0 ? Status::ok : Status::out_of_range);
    return false;
  }
  if (const auto done = at_once(op.pushes_, op.elements_, op.wanted_, op.promise_, op.style_)) {
    count(op, is_host() ? counters.local : counters.one_sided);
    op.count_ = done->count;
    if (done->status == Status::full || done->status == Status::empty)
      find_none(op, done->status, Stage::choose);
    else
      op.finish(done->status);
    return false;
  }
  if (works_directly(op.promise_)) {
    hub.look_again_soon();
    return false;
  }
  if (fails(op)) return false;
  const bool by_message = !is_host() && style_of(op) == Style::message;
  count(op, by_message ? counters.by_message : counters.one_sided);
  if (by_message) {
    op.stage_ = Stage::ask;
  } else if (!op.pushes_) {
    op.stage_ = Stage::get;
    if (seen_size() == 0 && is_injected(FaultInjection::empty_without_a_look)) {
      find_none(op, Status::empty, Stage::get);
      return false;
    }
  } else if (has_room(seen_tail + op.wanted_ - 1)) {
    op.stage_ = Stage::reserve;
  } else {
    op.stage_ = Stage::look;
  }
  return true;
}

/// Once for each call, however often it waits.
void QueueState::count(const QueueOperation& op, SharedCounter& counter) noexcept {
  if (op.vain_attempts_ == 0) ++counter;
}

Style QueueState::style_of(const QueueOperation& op) noexcept {
  if (spec.style == Style::message) return Style::message;
  if (!coherent || kMessageHeader + spec.element_bytes > kMaxMessageBytes) return Style::one_sided;
  const Style wanted = op.style_ != Style::automatic ? op.style_ : spec.style;
  if (wanted != Style::automatic) return wanted;
  return hub.cheaper_style(styles, op.pushes_ ? Call::push : Call::pop,
                           {.promise = op.promise_,
                            .clients = clients_of_host(hub.present),
                            .bytes = static_cast<double>(shape.slot_bytes) * op.wanted_,
                            .count = static_cast<double>(op.wanted_)},
                           spec.host);
}

bool QueueState::ask(QueueOperation& op) noexcept {
  if (fails(op) || !site.connected(spec.host)) return false;
  const auto most =
      static_cast<std::uint32_t>((kMaxMessageBytes - kMessageHeader) / spec.element_bytes);
  op.asked_for_ = std::min(most, op.wanted_ - op.count_);
  MessageHead head{.container = site.id(), .word = op.asked_for_};
  head.operation = op.pushes_ ? 0 : 1;
  const auto content = std::span(op.elements_ + std::size_t{op.count_} * spec.element_bytes,
                                 op.pushes_ ? std::size_t{op.asked_for_} * spec.element_bytes : 0);
  if (hub.ask(op, spec.host, head, content) == Hub::Sent::yes) op.stage_ = Stage::asked;
  return false;
}

bool QueueState::post(QueueOperation& op, std::span<const Operation> batch, Stage next) noexcept {
  switch (site.post(spec.host, batch, op.posted_)) {
    case Site::Posted::all:
      op.stage_ = next;
      return op.completion_.finished();
    case Site::Posted::later:
      return false;
    case Site::Posted::never: {
      const Status fault = site.fault(spec.host);
      hub.fabric.abandon(op.completion_);
      op.finish(fault != Status::ok ? fault : Status::out_of_range);
      return false;
    }
  }
  return false;
}

void QueueState::saw(std::uint64_t tail, std::uint64_t head) noexcept {
  seen_tail = std::max(seen_tail, tail);
  seen_head = std::max(seen_head, head);
}

bool QueueState::look(QueueOperation& op) noexcept {
  op.known_tail_ = seen_tail;
  const Operation ends =
      read(spec.host, site.region(), kTailOffset, op.ends_, kEndsBytes).notify(op.completion_);
  return post(op, std::span(&ends, 1), Stage::looked);
}

/// CON-Q4: the tail is at least what was known before the head was read; and if it is where the
/// head was found, then there was nothing.
bool QueueState::looked(QueueOperation& op) noexcept {
  const std::uint64_t tail = op.ends_[kTailOffset / 8], head = op.ends_[kHeadOffset / 8];
  saw(tail, head);
  if (op.has_tickets_) {
    op.stage_ = Stage::room;
    if (has_room(op.ticket_ + op.wanted_ - 1)) return true;
    find_none(op, Status::full, Stage::look);
    return false;
  }
  if (op.pushes_) {
    if (op.known_tail_ + op.wanted_ > head + spec.capacity) {
      find_none(op, Status::full, Stage::look);
      return false;
    }
    op.stage_ = Stage::choose;
    return true;
  }
  op.stage_ = Stage::get;
  if (head > op.ticket_) return true;
  if (tail == op.ticket_) {
    find_none(op, Status::empty, Stage::get);
    return false;
  }
  rest(op, kShortRestNs, Stage::get);  // another member is filling the slot
  return false;
}

// --- push ----------------------------------------------------------------------------------------

bool QueueState::reserve(QueueOperation& op) noexcept {
  if (fails(op) || host_waits || collecting) return false;
  Reservation* const reservation = free_reservation();
  const Operation add =
      fetch_add(spec.host, site.region(), kTailOffset, op.wanted_, &reservation->before)
          .notify(reservation->completion);
  std::size_t accepted = 0;
  switch (site.post(spec.host, std::span(&add, 1), accepted)) {
    case Site::Posted::all:
      break;
    case Site::Posted::later:
      return false;
    case Site::Posted::never:
      if (!fails(op)) op.finish(Status::out_of_range);
      return false;
  }
  reservation->busy = true;
  reservation->op = &op;
  reservation->count = op.wanted_;
  ++reserving;
  op.reservation_ = reservation;
  op.stage_ = Stage::reserved;
  return reservation->completion.finished();
}

bool QueueState::reserved(QueueOperation& op) noexcept {
  Reservation& reservation = *op.reservation_;
  if (!reservation.completion.finished()) {
    static_cast<void>(fails(op));
    return false;
  }
  op.reservation_ = nullptr;
  reservation.busy = false;
  --reserving;
  if (reservation.completion.failed()) {
    op.finish(Status::lost);
    return false;
  }
  op.ticket_ = reservation.before;
  saw(op.ticket_ + op.wanted_, 0);
  enlist(op);
  op.stage_ = Stage::room;
  return true;
}

bool QueueState::fill(QueueOperation& op) noexcept {
  const auto at = static_cast<std::uint32_t>(op.ticket_ % spec.capacity);
  const std::uint32_t before_end = std::min(op.wanted_, spec.capacity - at);
  if (op.posted_ == 0)
    for (std::uint32_t i = 0; i < op.wanted_; ++i)
      encode(shape, op.elements_ + std::size_t{i} * spec.element_bytes, op.ticket_ + i + 1,
             op.image_.data() + std::size_t{i} * shape.slot_bytes);
  const std::size_t first_bytes = std::size_t{before_end} * shape.slot_bytes;
  const std::array batch{
      write(spec.host, site.region(), offset_of(op.ticket_), op.image_.data(), first_bytes)
          .notify(op.completion_, Notify::remotely),
      write(spec.host, site.region(), kQueueSlots, op.image_.data() + first_bytes,
            std::size_t{op.wanted_ - before_end} * shape.slot_bytes)
          .notify(op.completion_, Notify::remotely)};
  return post(op, std::span(batch).first(before_end == op.wanted_ ? 1 : 2), Stage::done);
}

// --- pop -----------------------------------------------------------------------------------------

bool QueueState::get(QueueOperation& op) noexcept {
  op.ticket_ = seen_head;
  const auto at = static_cast<std::uint32_t>(op.ticket_ % spec.capacity);
  op.asked_for_ = std::min(op.wanted_, spec.capacity - at);
  const Operation slots = read(spec.host, site.region(), offset_of(op.ticket_), op.image_.data(),
                               std::size_t{op.asked_for_} * shape.slot_bytes)
                              .notify(op.completion_);
  return post(op, std::span(&slots, 1), Stage::got);
}

bool QueueState::got(QueueOperation& op) noexcept {
  op.count_ = 0;
  op.skips_ = false;
  while (op.count_ < op.asked_for_) {
    const std::byte* const slot = op.image_.data() + std::size_t{op.count_} * shape.slot_bytes;
    const std::uint64_t stamp = op.ticket_ + op.count_ + 1;
    if (!is_whole(shape, slot)) break;  // what of a mark is under way still would spoil the next
    if (op.count_ == 0 && word_at(slot) == (stamp | kSkip)) op.skips_ = true;
    if (word_at(slot) != stamp) break;
    ++op.count_;
  }
  op.stage_ = op.count_ > 0 || op.skips_ ? Stage::take : Stage::look;
  return true;
}

bool QueueState::take(QueueOperation& op) noexcept {
  const std::uint64_t moves = op.skips_ ? 1 : op.count_;
  const Operation swap = compare_swap(spec.host, site.region(), kHeadOffset, op.ticket_,
                                      op.ticket_ + moves, &op.before_)
                             .notify(op.completion_);
  return post(op, std::span(&swap, 1), Stage::taken);
}

bool QueueState::taken(QueueOperation& op) noexcept {
  const bool is_late = op.before_ != op.ticket_ && !is_injected(FaultInjection::lost_pop_is_used);
  if (is_late || op.skips_) {
    saw(0, op.before_ != op.ticket_ ? op.before_ : op.ticket_ + 1);
    op.stage_ = Stage::get;
    return true;
  }
  saw(0, op.ticket_ + op.count_);
  for (std::uint32_t i = 0; i < op.count_; ++i)
    decode(shape, op.image_.data() + std::size_t{i} * shape.slot_bytes, 0, spec.element_bytes,
           op.elements_ + std::size_t{i} * spec.element_bytes);
  op.finish(Status::ok);
  return false;
}

// --- the end -------------------------------------------------------------------------------------

void QueueState::enlist(QueueOperation& op) noexcept {
  op.has_tickets_ = op.listed_ = true;
  op.before_this_ = nullptr;
  op.after_this_ = first;
  if (first != nullptr) first->before_this_ = &op;
  first = &op;
}

void QueueState::delist(QueueOperation& op) noexcept {
  if (!op.listed_) return;
  op.listed_ = false;
  (op.before_this_ != nullptr ? op.before_this_->after_this_ : first) = op.after_this_;
  if (op.after_this_ != nullptr) op.after_this_->before_this_ = op.before_this_;
}

/// CON-Q3: tickets that have no element yet are marked, in poll_part().
void QueueState::clean_up(QueueOperation& op) noexcept {
  hub.forget(op);
  delist(op);
  if (op.reservation_ != nullptr) op.reservation_->op = nullptr;
  op.reservation_ = nullptr;
  const bool filled =
      op.stage_ == Stage::done || is_injected(FaultInjection::given_up_tickets_stay);
  if (op.has_tickets_ && !filled && site.fault(spec.host) == Status::ok) {
    const auto at = static_cast<std::uint32_t>(op.ticket_ % spec.capacity);
    const std::uint32_t posted = op.posted_ == 0 ? 0 : std::min(op.wanted_, spec.capacity - at);
    orphans.push_back({op.ticket_ + posted, op.wanted_ - posted});
    hub.look_again_soon();
  }
  op.has_tickets_ = false;
}

}  // namespace dunlin::container
