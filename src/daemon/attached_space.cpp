#include "daemon/attached_space.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "remote/control_channel.hpp"

namespace dunlin::attached {

using remote::Status;
using remote::Until;

namespace {

std::size_t lead_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % kWordBytes;
}

std::unique_ptr<AttachedBackend> make_backend(Descriptor socket, const SharedMemory& memory,
                                              AttachedMembers& members, const std::string& daemon,
                                              const Packet& packet) {
  return std::make_unique<AttachedBackend>(std::move(socket), control_of(memory.memory().data()),
                                           members, daemon, packet);
}

}  // namespace

AttachedSpace::AttachedSpace(Descriptor socket, const Welcome& welcome, const DaemonAddress& daemon)
    : name_(welcome.packet.space.data()),
      group_(welcome.packet.group.data()),
      daemon_(attached::describe(daemon)),
      rank_(welcome.packet.rank),
      group_members_(welcome.packet.members),
      layout_{welcome.packet.slots, welcome.packet.transfer_bytes},
      memory_(welcome.memory, layout_.bytes()),
      slots_(layout_.slots) {
  DUNLIN_ASSERT_ALWAYS(layout_.is_sound(),
                       "DMN-S1: the daemon's numbers are checked before they are used");
  auto backend = make_backend(std::move(socket), memory_, members_, daemon_, welcome.packet);
  backend_ = backend.get();
  FabricSetup setup{.kind = "attached",
                    .description = "attached to the " + daemon_,
                    .group = group_,
                    .rank = 0,
                    .names = {""},
                    .properties = {}};
  setup.properties.max_peers = 1;
  setup.sleeper.emplace();
  fabric_ = make_fabric(std::move(setup), std::move(backend));
  progress_ = std::make_unique<remote::Progress>(*fabric_, members_);
  free_.reserve(layout_.slots);
  undo_.reserve(layout_.slots);
  for (std::uint32_t slot = layout_.slots; slot > 0; --slot)
    free_.push_back(static_cast<std::uint16_t>(slot - 1));
  progress_->add(*this);
}

AttachedSpace::~AttachedSpace() {
  DUNLIN_ASSERT(
      std::ranges::all_of(slots_, [](const Slot& slot) { return slot.waiting == nullptr; }),
      "REM-3: no call outlives its space");
  progress_->remove(*this);
}

std::string AttachedSpace::text_of(Rank rank) const {
  if (rank == Placement::kInTurn) return "a member in turn";
  if (rank == Placement::kHere || rank == rank_)
    return "member " + std::to_string(rank_) + " (the daemon)";
  return "member " + std::to_string(rank) + (rank < group_members_ ? "" : " (there is none)");
}

std::vector<Key> AttachedSpace::lost() const {
  std::vector<Key> all;
  all.reserve(lost_.size());
  for (const std::uint64_t key : lost_) all.push_back(Key{key});
  return all;
}

// --- requests ------------------------------------------------------------------------------------

/// A call that is given up wants no reply any more. If a lock is granted all the same, it is given
/// back then.
struct AttachedSpace::Waiting {
  AttachedSpace& space;
  const SegmentRequest& wanted;
  Outcome& outcome;
  std::uint16_t slot;
  bool answered = false;
  bool resumed = false;  // the protocol has the answer

  ~Waiting() {
    if (resumed) return;
    if (answered) {
      space.undo_granted(wanted, outcome);
      return;
    }
    Slot& asked = space.slots_[slot];
    DUNLIN_ASSERT(asked.in_use && asked.waiting == this,
                  "DMN-S3: a slot is one call's until its reply");
    asked.waiting = nullptr;
    if (asked.request.call != Call::lock) return;
    alignas(kCacheLineBytes) Request cancel{};
    cancel.slot = slot;
    cancel.call = Call::cancel;
    cancel.argument = asked.request.number;
    space.post(cancel);
  }
};

SegmentOperation AttachedSpace::begin(const SegmentRequest& request, std::string_view name,
                                      std::uint64_t timeout_ns) {
  return {*progress_, call(request, std::string(name)), timeout_ns, begun(request)};
}

remote::Protocol<Outcome> AttachedSpace::call(SegmentRequest wanted, std::string name) {
  Outcome outcome = begun(wanted);
  {
    struct Owed {  // an unlock happens also if it is given up while it waits for a slot
      AttachedSpace& space;
      Key key;
      bool owed;
      ~Owed() {
        if (owed) space.undo(Call::unlock, key);
      }
    } unlock{*this, wanted.key, wanted.call == SegmentCall::unlock};
    co_await Until([&] { return !free_.empty(); });
    unlock.owed = false;
  }
  alignas(kCacheLineBytes) Request request{};
  request.slot = free_.back();
  outcome.status = describe(wanted, name, request);
  if (outcome.status != Status::ok) co_return outcome;
  DUNLIN_ASSERT(!slots_[request.slot].in_use, "DMN-S3: a slot is one call's until its reply");
  free_.pop_back();
  post(request);
  Waiting waiting{*this, wanted, outcome, request.slot};
  slots_[request.slot] = {.waiting = &waiting, .request = request, .in_use = true};
  co_await Until([&] { return waiting.answered; });
  waiting.resumed = true;
  DUNLIN_ASSERT(outcome.status != Status::under_way,
                "REM-1: a call ends with `ok` or a named error, whatever the daemon says");
  if (outcome.status == Status::lost) lost_.insert(wanted.key.value);
  co_return outcome;
}

Status AttachedSpace::describe(const SegmentRequest& call, const std::string& name,
                               Request& request) noexcept {
  request.key = call.key.value;
  switch (call.call) {
    case SegmentCall::none:
      return Status::not_allowed;
    case SegmentCall::allocate:
      request.call = Call::allocate;
      describe_allocation(call, name, request);
      return Status::ok;
    case SegmentCall::find: {
      if (name.size() > kMaxSegmentNameBytes) return Status::unknown;
      request.call = Call::find;
      request.bytes = static_cast<std::uint32_t>(name.size());
      alignas(kWordBytes) std::array<char, kMaxSegmentNameBytes> text{};
      std::copy(name.begin(), name.end(), text.begin());
      memory::place(buffer(request.slot), text.data(), text.size());
      return Status::ok;
    }
    case SegmentCall::release:
      request.call = Call::release;
      return Status::ok;
    case SegmentCall::lock:
      request.call = call.try_only ? Call::try_lock : Call::lock;
      return Status::ok;
    case SegmentCall::unlock:
      request.call = Call::unlock;
      return Status::ok;
    case SegmentCall::get:
    case SegmentCall::put:
      break;
  }
  const std::size_t lead = lead_of(call.memory);
  if (call.bytes > layout_.transfer_bytes - lead || lead != call.offset % kWordBytes) {
    const bool fits = call.bytes <= layout_.transfer_bytes - lead;
    return fits && call.bytes > 0 ? Status::misaligned
           : fits                 ? Status::out_of_range
                                  : Status::over_quota;
  }
  request.offset = call.offset;
  request.bytes = static_cast<std::uint32_t>(call.bytes);
  request.argument = call.known_version;
  std::uint32_t flags = 0;
  if (call.wanted_version != UINT64_MAX) {
    request.argument = call.wanted_version;
    flags = kOneVersion;
  } else if (call.max_age_ns != UINT64_MAX) {
    request.argument = call.max_age_ns;
    flags = kNoOlder;
  }
  const bool is_get = call.call == SegmentCall::get;
  const bool is_inline = lead + call.bytes <= (is_get ? kReplyInline : kRequestInline);
  request.call = is_get ? Call::get : Call::put;
  request.flags = static_cast<std::uint8_t>(flags | (is_inline ? kIsInline : 0));
  if (is_get) return Status::ok;
  if (is_inline) {
    std::memcpy(request.data.data() + lead, call.memory, call.bytes);
  } else {
    memory::copy_unwatched(buffer(request.slot) + lead, call.memory, call.bytes);
  }
  return Status::ok;
}

void AttachedSpace::describe_allocation(const SegmentRequest& call, const std::string& name,
                                        const Request& request) noexcept {
  DUNLIN_ASSERT_ALWAYS(name.size() <= kMaxSegmentNameBytes,
                       "the caller has checked the name by fault_of()");
  alignas(kWordBytes) Wish wish{};
  wish.bytes = call.bytes;
  wish.stale_ns = call.stale_ns;
  wish.coherence = static_cast<std::uint32_t>(call.coherence);
  wish.versions = call.versions;
  wish.copies = call.copies;
  wish.place = call.place;
  wish.name_bytes = static_cast<std::uint32_t>(name.size());
  std::copy(name.begin(), name.end(), wish.name.begin());
  memory::place(buffer(request.slot), &wish, sizeof wish);
}

void AttachedSpace::post(Request& request) noexcept {
  DUNLIN_ASSERT(request.slot < slots_.size() && request.call >= Call::allocate &&
                    request.call <= Call::cancel,
                "DMN-1: the library sends nothing for which a daemon cuts it off");
  DUNLIN_ASSERT((request.call != Call::get && request.call != Call::put) ||
                    request.offset % kWordBytes + request.bytes <= layout_.transfer_bytes,
                "DMN-1: the library sends nothing for which a daemon cuts it off");
  request.number = requests_ + 1;
  publish(memory_.memory().data() + layout_.request_at(requests_), request);
  ++requests_;
  backend_->ring_if_daemon_rests();
}

// --- replies -------------------------------------------------------------------------------------

std::size_t AttachedSpace::poll_part() {
  std::size_t done = 0;
  alignas(kCacheLineBytes) Reply reply;
  while (take(reply, memory_.memory().data() + layout_.reply_at(replies_), replies_ + 1)) {
    ++replies_;
    ++done;
    __builtin_prefetch(memory_.memory().data() + layout_.reply_at(replies_));
    take_reply(reply);
  }
  if (!undo_.empty()) send_undone();
  return done;
}

void AttachedSpace::take_reply(const Reply& reply) {
  if (reply.slot >= slots_.size() || !slots_[reply.slot].in_use)
    return members_.stop("the " + daemon_ + " replied to what was not asked");
  Slot& slot = slots_[reply.slot];
  const Request request = slot.request;
  Waiting* const waiting = std::exchange(slot.waiting, nullptr);
  if (waiting != nullptr) take_result(*waiting, request, reply);
  slot.in_use = false;
  free_.push_back(reply.slot);
  DUNLIN_ASSERT(free_.size() <= slots_.size(), "DMN-S3: a slot is free once");
  if (waiting != nullptr || static_cast<Status>(reply.status) != Status::ok) return;
  if (request.call == Call::lock || request.call == Call::try_lock)
    undo(Call::unlock, Key{request.key});
  if (request.call == Call::allocate) undo(Call::release, Key{reply.key});
}

void AttachedSpace::take_result(Waiting& waiting, const Request& request,
                                const Reply& reply) noexcept {
  const SegmentRequest& call = waiting.wanted;
  DUNLIN_ASSERT(!waiting.answered && waiting.slot == request.slot,
                "REM-1: a call is answered once");
  DUNLIN_ASSERT(request.call != Call::get || request.bytes == call.bytes,
                "REM-3: a get writes as many bytes to the caller's buffer as it has asked for");
  Outcome& outcome = waiting.outcome;
  if (reply.key != 0) outcome.key = Key{reply.key};
  outcome.version = reply.version;
  outcome.unchanged = (reply.flags & kUnchanged) != 0;
  outcome.recovered = (reply.flags & kRecovered) != 0;
  const auto status = static_cast<Status>(reply.status);
  if (request.call == Call::get && status == Status::ok && !outcome.unchanged) {
    const std::size_t lead = request.offset % kWordBytes;
    if ((request.flags & kIsInline) != 0) {
      std::memcpy(call.memory, reply.data.data() + lead, call.bytes);
    } else {
      memory::copy_unwatched(call.memory, buffer(request.slot) + lead, call.bytes);
    }
  }
  outcome.status = status == Status::under_way ? Status::lost : status;
  waiting.answered = true;
}

/// Gives back what the daemon has granted to a call that was given up between answer and end.
void AttachedSpace::undo_granted(const SegmentRequest& wanted, const Outcome& outcome) {
  if (!outcome.ok()) return;
  if (wanted.call == SegmentCall::lock) undo(Call::unlock, wanted.key);
  if (wanted.call == SegmentCall::allocate) undo(Call::release, outcome.key);
}

void AttachedSpace::undo(Call call, Key key) { undo_.push_back({call, key}); }

void AttachedSpace::send_undone() noexcept {
  while (!undo_.empty() && !free_.empty()) {
    DUNLIN_ASSERT(undo_.back().call == Call::unlock || undo_.back().call == Call::release,
                  "REM-3: the client gives back a lock, or a segment, that came too late");
    alignas(kCacheLineBytes) Request request{};
    request.slot = free_.back();
    request.call = undo_.back().call;
    request.key = undo_.back().key.value;
    free_.pop_back();
    undo_.pop_back();
    post(request);
    slots_[request.slot] = {.waiting = nullptr, .request = request, .in_use = true};
  }
}

}  // namespace dunlin::attached
