#include "daemon/session.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "assert.hpp"
#include "fabric/names.hpp"
#include "fabric/shm/membarrier.hpp"
#include "segment/space.hpp"

namespace dunlin::attached {

using remote::Status;

namespace {

/// Where the bytes of a get or put begin in a buffer or an entry, whose words are aligned as the
/// segment's are.
std::size_t lead(const Request& request) noexcept { return request.offset % kWordBytes; }

bool is_transfer(Call call) noexcept { return call == Call::get || call == Call::put; }
bool is_wait(Call call) noexcept {
  return call == Call::lock || call == Call::try_lock || call == Call::get || call == Call::find;
}

bool is_lock(Call call) noexcept { return call == Call::lock || call == Call::try_lock; }

/// What an allocation costs in bytes of the pools.
std::uint64_t price(const SegmentSpec& spec) noexcept {
  return round_up(block_bytes(spec.coherence, spec.bytes, spec.versions), kCacheLineBytes) *
         spec.copies;
}

}  // namespace

Session::Session(SegmentSpace& space, Ledger& ledger, std::vector<std::uint32_t>& replied,
                 Layout layout, std::span<std::byte> memory, SessionOptions options)
    : space_(space),
      ledger_(ledger),
      replied_(replied),
      layout_(layout),
      memory_(memory),
      options_(options) {
  DUNLIN_ASSERT_ALWAYS(layout_.is_sound() && memory_.size() == layout_.bytes(),
                       "DMN-S1: the rings and buffers lie in the shared memory");
  DUNLIN_ASSERT_ALWAYS(options_.owner != 0,
                       "DMN-3: a lock is a client's, and not the daemon's own");
  slots_ = std::vector<Slot>(layout.slots);
  for (Slot& slot : slots_)  // whose memory is not touched before it is used
    slot.buffer = std::unique_ptr<std::byte[]>(new std::byte[layout.transfer_bytes]);
  locks_.reserve(options.quota_locks);
}

Session::~Session() {
  end();
  for (Slot& slot : slots_) {
    slot.operation.abandon();
    if (slot.charged != 0) ledger_.refund(slot.account, slot.charged);
  }
  release_locks();
}

std::size_t Session::poll() {
  if (ended_ || fault_ != nullptr) return 0;
  if (waiting_unlocks_ > 0)
    for (Slot& slot : slots_)
      if (slot.state == State::held_back) start_behind(slot);
  std::size_t done = 0;
  alignas(kCacheLineBytes) Request request;
  // Takes at most a ring's worth of requests, so that no client keeps the daemon from the others.
  while (done < layout_.entries() && fault_ == nullptr &&
         take(request, memory_.data() + layout_.request_at(requests_), requests_ + 1)) {
    ++requests_;
    ++done;
    __builtin_prefetch(memory_.data() + layout_.request_at(requests_));
    take_request(request);
  }
  return done;
}

void Session::take_request(const Request& request) {
  if (request.slot >= slots_.size()) return break_off("a request for a slot that there is not");
  if (request.call == Call::cancel) return cancel(request);
  if (request.call < Call::allocate || request.call > Call::unlock)
    return break_off("a request that no version knows");
  Slot& slot = slots_[request.slot];
  if (slot.state != State::idle) return break_off("two requests in one slot");
  if (is_transfer(request.call) &&
      (request.bytes > layout_.transfer_bytes ||
       lead(request) + request.bytes > ((request.flags & kIsInline) == 0 ? layout_.transfer_bytes
                                        : request.call == Call::put      ? kRequestInline
                                                                         : kReplyInline)))
    return break_off("more bytes than there is room for");
  slot.request = request;
  slot.state = State::running;
  ++running_;
  DUNLIN_ASSERT(running_ <= slots_.size() && waiting_unlocks_ < running_,
                "DMN-S3: each slot has one operation under way");
  start(slot);
}

/// Cancels a request: the client wants neither its result nor its lock. A call that cannot be given
/// up ends by itself.
void Session::cancel(const Request& request) {
  Slot& slot = slots_[request.slot];
  if (slot.state != State::running || slot.request.number != request.argument) return;
  if (!is_wait(slot.request.call)) return;
  if (is_lock(slot.request.call)) ledger_.give_back_locks(1);
  slot.operation.abandon();
  reply(slot, Status::abandoned);
}

void Session::start(Slot& slot) {
  DUNLIN_ASSERT(!ended_ && slot.operation.finished() && slot.charged == 0,
                "DMN-S3: nothing begins for a client that has ended, or in a slot that is in use");
  const Request& request = slot.request;
  switch (request.call) {
    case Call::allocate:
      return start_allocation(slot);
    case Call::find: {
      std::array<char, kMaxSegmentNameBytes> name;
      const std::size_t bytes = std::min<std::size_t>(request.bytes, name.size());
      memory::fetch(slot.buffer.get(), shared_buffer(slot), bytes);
      std::memcpy(name.data(), slot.buffer.get(), bytes);
      return run(slot, {.call = SegmentCall::find}, std::string_view(name.data(), bytes));
    }
    case Call::get:
    case Call::put:
      if (!start_transfer(slot)) reply(slot, Status::out_of_range);
      return;
    case Call::lock:
    case Call::try_lock:
      return start_lock(slot);
    case Call::release:
    case Call::unlock:
      slot.state = State::held_back;
      ++waiting_unlocks_;
      return start_behind(slot);
    case Call::cancel:
      return;
  }
}

bool Session::start_transfer(Slot& slot) {
  const Request& request = slot.request;
  if (request.bytes == 0) return false;
  DUNLIN_ASSERT(lead(request) + request.bytes <= layout_.transfer_bytes,
                "DMN-S1: the copy of a request is checked before it is used");
  std::byte* const own = slot.buffer.get() + lead(request);
  SegmentRequest call{.call = SegmentCall::get,
                      .key = Key{request.key},
                      .memory = own,
                      .bytes = request.bytes,
                      .offset = request.offset,
                      .owner = options_.owner};
  if (request.call == Call::put) {
    call.call = SegmentCall::put;
    if ((request.flags & kIsInline) != 0) {
      std::memcpy(own, request.data.data() + lead(request), request.bytes);
    } else {
      memory::copy_unwatched(own, shared_buffer(slot) + lead(request), request.bytes);
    }
  }
  if ((request.flags & kOneVersion) != 0) {
    call.wanted_version = request.argument;
  } else if ((request.flags & kNoOlder) != 0) {
    call.max_age_ns = request.argument;
  } else if (request.call == Call::get) {
    call.known_version = request.argument;
  }
  run(slot, call);
  return true;
}

void Session::start_allocation(Slot& slot) {
  alignas(kWordBytes) Wish wish;
  memory::fetch(&wish, shared_buffer(slot), sizeof wish);
  SegmentSpec spec{
      .bytes = wish.bytes,
      .coherence = static_cast<Coherence>(std::min<std::uint32_t>(wish.coherence, 255)),
      .placement = {wish.place},
      .name =
          std::string(wish.name.data(), std::min<std::size_t>(wish.name_bytes, wish.name.size())),
      .stale_ns = wish.stale_ns,
      .versions = wish.versions,
      .copies = wish.copies};
  SegmentPort& port = SegmentPort::of(space_);
  const Rank place = port.place_of(spec.placement);
  const bool is_coherence = wish.coherence <= static_cast<std::uint32_t>(Coherence::delta);
  if (!is_coherence || !fault_of(spec).empty() || place >= port.members() ||
      !is_printable(spec.name))
    return reply(slot, Status::not_allowed);
  slot.account = spec.name.empty() ? options_.owner : Ledger::of_user(options_.user);
  const bool may_overflow = spec.bytes > options_.quota_bytes;
  if (may_overflow || !ledger_.charge(slot.account, price(spec), options_.quota_bytes))
    return reply(slot, Status::over_quota);
  slot.charged = price(spec);
  DUNLIN_ASSERT(ledger_.used(slot.account) <= options_.quota_bytes,
                "an account keeps to its quota");
  run(slot, request_for(spec, place), spec.name);
}

void Session::start_lock(Slot& slot) {
  std::size_t waiting = 0;
  for (const Slot& other : slots_)
    waiting += other.state == State::running && &other != &slot && is_lock(other.request.call);
  if (locks_.size() + waiting >= options_.quota_locks || !ledger_.take_lock())
    return reply(slot, Status::over_quota);
  run(slot, {.call = SegmentCall::lock,
             .try_only = slot.request.call == Call::try_lock,
             .key = Key{slot.request.key},
             .owner = options_.owner});
}

/// Starts operations that waited. The space requires that operations under a lock have ended when
/// the lock is given back; a client need not keep to that.
void Session::start_behind(Slot& slot) {
  DUNLIN_ASSERT(slot.state == State::held_back && waiting_unlocks_ > 0,
                "DMN-S2: an unlock that waited for the client's puts begins once");
  if (uses(slot.request.key)) return;
  --waiting_unlocks_;
  slot.state = State::running;
  run(slot, {.call = slot.request.call == Call::unlock ? SegmentCall::unlock : SegmentCall::release,
             .key = Key{slot.request.key},
             .owner = options_.owner});
}

bool Session::uses(std::uint64_t key) const noexcept {
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.state == State::running && slot.request.key == key &&
           is_transfer(slot.request.call);
  });
}

void Session::run(Slot& slot, const SegmentRequest& request, std::string_view name) {
  DUNLIN_ASSERT(request.memory == nullptr ||
                    (request.memory >= slot.buffer.get() &&
                     request.memory + request.bytes <= slot.buffer.get() + layout_.transfer_bytes),
                "DMN-S1: the space gets buffers of the session's own");
  DUNLIN_ASSERT(slot.state == State::running,
                "DMN-S3: an operation that was given up does not begin");
  slot.operation = SegmentPort::of(space_).begin(request, name, remote::kForever);
  if (slot.operation.finished()) return finished(slot);
  slot.operation.then([this, &slot] { finished(slot); });
}

void Session::finished(Slot& slot) {
  DUNLIN_ASSERT(slot.operation.finished(),
                "DMN-S1: a buffer is read when nothing is under way there");
  const Outcome outcome = slot.operation.result();
  const Key key{slot.request.key};
  switch (slot.request.call) {
    case Call::allocate:
      if (outcome.ok()) {
        ledger_.record(outcome.key, slot.account, slot.charged);
      } else {
        ledger_.refund(slot.account, slot.charged);
      }
      slot.charged = 0;
      break;
    case Call::release:
      ledger_.give_back_locks(std::erase(locks_, key));
      if (outcome.ok() || outcome.status == Status::released) ledger_.forget(key);
      break;
    case Call::lock:
    case Call::try_lock:
      if (outcome.ok()) {
        DUNLIN_ASSERT(locks_.size() < options_.quota_locks, "a client keeps to its quota");
        locks_.push_back(key);
      } else {
        ledger_.give_back_locks(1);
      }
      break;
    case Call::unlock:
      ledger_.give_back_locks(std::erase(locks_, key));
      break;
    default:
      break;
  }
  reply(slot, outcome.status, outcome);
}

void Session::reply(Slot& slot, Status status, const Outcome& outcome) {
  DUNLIN_ASSERT(slot.state == State::running && running_ > 0,
                "DMN-S3: an operation that was given up is not answered");
  slot.state = State::idle;
  --running_;
  if (ended_) {
    if (running_ == 0) release_locks();
    return;
  }
  DUNLIN_ASSERT(replies_ < requests_, "DMN-1: a reply is for one request, so its ring has room");
  const Request& request = slot.request;
  alignas(kCacheLineBytes) Reply entry{};
  entry.number = replies_ + 1;
  entry.key = outcome.key.value;
  entry.version = outcome.version;
  entry.slot = request.slot;
  entry.status = static_cast<std::uint8_t>(status);
  entry.flags = static_cast<std::uint8_t>((outcome.unchanged ? kUnchanged : 0) |
                                          (outcome.recovered ? kRecovered : 0));
  if (request.call == Call::get && status == Status::ok && !outcome.unchanged) {
    const std::byte* const own = slot.buffer.get() + lead(request);
    if ((request.flags & kIsInline) != 0) {
      DUNLIN_ASSERT(lead(request) + request.bytes <= entry.data.size(),
                    "DMN-S1: the copy of a request is checked before it is used");
      std::memcpy(entry.data.data() + lead(request), own, request.bytes);
    } else {
      memory::copy_unwatched(shared_buffer(slot) + lead(request), own, request.bytes);
    }
  }
  publish(memory_.data() + layout_.reply_at(replies_), entry);
  ++replies_;
  if (listed_) return;
  listed_ = true;
  replied_.push_back(options_.index);
}

// --- ringing -------------------------------------------------------------------------------------

void Session::rest() noexcept {
  DUNLIN_ASSERT(!rests_ && !ended_, "a side says once that it is about to sleep");
  rests_ = true;
  memory::exchange(&control_of(memory_.data()).daemon_rests, 1);  // before the last poll
}

void Session::go_on() noexcept {
  DUNLIN_ASSERT(rests_ && !ended_, "a side that goes on has rested");
  rests_ = false;
  memory::store(control_of(memory_.data()).daemon_rests, 0);
}

bool Session::must_ring() noexcept {
  DUNLIN_ASSERT(listed_, "a side that has published looks whether the other sleeps");
  listed_ = false;
  shm::full_fence();  // the replies must be visible before the look
  return memory::load(control_of(memory_.data()).client_sleeps) != 0;
}

std::uint64_t Session::beats() const noexcept {
  return memory::load(control_of(memory_.data()).beats);
}

// --- the end -------------------------------------------------------------------------------------

void Session::end() noexcept {
  if (ended_) return;
  ended_ = true;
  for (Slot& slot : slots_) {
    const bool waits = slot.state == State::running && is_wait(slot.request.call);
    if (slot.state == State::held_back) --waiting_unlocks_;
    if (slot.state != State::held_back && !waits) continue;
    if (waits && is_lock(slot.request.call)) ledger_.give_back_locks(1);
    slot.operation.abandon();
    slot.state = State::idle;
    --running_;
  }
  DUNLIN_ASSERT(waiting_unlocks_ == 0, "DMN-S3: nothing begins for a client that has ended");
  if (running_ == 0) release_locks();
}

void Session::release_locks() noexcept {
  DUNLIN_ASSERT(ended_, "DMN-S3: the locks of a client are released when it has ended");
  for (const Key key : locks_) {
    const SegmentRequest unlock{
        .call = SegmentCall::unlock, .holder_died = true, .key = key, .owner = options_.owner};
    static_cast<void>(SegmentPort::of(space_).begin(unlock, {}, remote::kForever));
  }
  ledger_.give_back_locks(locks_.size());
  locks_.clear();
}

}  // namespace dunlin::attached
