#include <algorithm>

#include "fabric/alignment.hpp"
#include "fabric/stream/stream_backend.hpp"

/// Operations that a device performs by itself, and what they require: memory that peers must let
/// go of before it is freed, and bells for peers that sleep.
///  STR-B1  An operation by frames is done by the peer's processor, later than one by device. So
///      signals, reads and atomics that follow it go by frames as well, until it is answered.
///  STR-B2  If a signal by device was posted after the operations in a frame, the frame is handed
///      over first.
///  STR-B3  Native atomics are never done by frames: the device does not see what processors do.
///  STR-B4  A member that may sleep says so, and does not sleep for long before all have noted it.
///      A peer that has noted it sends a frame behind each signal by device, which wakes the
///      member; writes that it posted before have been placed when its note comes.
namespace dunlin::stream {
namespace {

constexpr const char* kNoDevice = "it means a device that it does not have";
/// After this long without a sleep, peers need not ring any more.
constexpr std::uint64_t kWakefulNs = 1'000'000'000;

bool is_whole_words(const Operation& operation) noexcept {
  return operation.offset % kWordBytes == 0 && operation.bytes % kWordBytes == 0;
}

}  // namespace

bool StreamBackend::waits_for_answers(const Contact& contact) noexcept {
  return !contact.unplaced.empty() || !contact.reads.empty() || !contact.atomics.empty();
}

StreamBackend::Way StreamBackend::way_of(const Contact& contact,
                                         const Operation& operation) const noexcept {
  const DeviceOperations::Abilities& able = device_->abilities();
  if (is_atomic(operation.kind)) {
    if (!properties_.native_atomics) return Way::frames;
    return waits_for_answers(contact) ? Way::later : Way::device;  // STR-B3
  }
  const bool is_put = operation.kind == OperationKind::put;
  const bool able_to =
      operation.kind == OperationKind::read
          ? able.reads
          : is_put || (able.ordered_writes && (able.partial_words || is_whole_words(operation)));
  if (!able_to || operation.bytes == 0 || !device_->can(operation)) return Way::frames;  // STR-R1
  return is_put || !waits_for_answers(contact) ? Way::device : Way::frames;              // STR-B1
}

Refusal StreamBackend::start_by_device(Contact& contact, const Remote& target,
                                       const Operation& operation) noexcept {
  const bool signal = operation.kind == OperationKind::write || is_atomic(operation.kind);
  if (signal && !contact.outbox.empty()) {
    contact.outbox.flush();
    if (!contact.outbox.empty()) return Refusal::queue_full;  // STR-B2
  }
  const DeviceOperations::Started started = device_->start(operation, target.key, target.bytes);
  if (started == DeviceOperations::Started::full) return Refusal::queue_full;
  if (signal) contact.owes_bell = true;
  if (started == DeviceOperations::Started::pending && operation.completion != nullptr)
    begin(*operation.completion);
  return Refusal::none;
}

void StreamBackend::take_finished(Rank from, Completion& completion, bool well) noexcept {
  core().count_handled();
  finish_one(&completion, from, well);
}

/// Hands to the device what was posted to one peer; a peer that sleeps is woken (STR-B4).
void StreamBackend::ring_device(Rank peer) noexcept {
  device_->ring(peer);
  Contact& contact = contacts_[peer];
  if (!std::exchange(contact.owes_bell, false) || !contact.dozes || core().failing(peer)) return;
  if (contact.outbox.empty()) send_entry(peer, {.kind = EntryKind::beat});
  contact.outbox.flush();
}

// --- memory --------------------------------------------------------------------------------------

/// STR-R2: keeps memory until the last peer that may still reach it has let go, and our own device
/// has finished what was started to that peer, of which the region may be the source.
void StreamBackend::retire(std::unique_ptr<Memory> memory, const LocalRegion& region) {
  Retired retired{.memory = std::move(memory), .users = {}};
  const bool reached = device_ != nullptr && retired.memory->number != 0;
  for (Rank peer = 0; reached && peer < members_; ++peer) {
    const bool knows =
        peer != rank_ && core().linked(peer) && contacts_[peer].greets && region.is_for(peer);
    if (!core().failing(peer)) retired.users.push_back({peer, device_->started(peer), !knows});
  }
  retired_.push_back(std::move(retired));
}

void StreamBackend::free_retired() noexcept {
  const auto done = [&](const Retired::User& user) {
    return core().failing(user.peer) || (user.let_go && device_->finished(user.peer, user.started));
  };
  for (Retired& retired : retired_) std::erase_if(retired.users, done);
  std::erase_if(retired_, [&](const Retired& retired) {
    if (!retired.users.empty() || is_source(*retired.memory)) return false;
    if (device_ != nullptr && retired.memory->number != 0)
      device_->close(retired.memory->pages.memory());
    return true;
  });
}

/// Throws Error if too many regions are retired: if a member went on without the peers that do not
/// answer, the regions that they may reach would fill its memory.
void StreamBackend::check_retired(const std::string& name) const {
  if (retired_.size() < kMaxRetiredRegions) return;
  std::string awaited;
  for (const Retired::User& user : retired_.front().users)
    if (!user.let_go) awaited += (awaited.empty() ? " of " : ", ") + core().name_of(user.peer);
  throw Error("region '" + name + "' cannot be announced yet: " + std::to_string(retired_.size()) +
              " regions that were released are still in reach of others (kMaxRetiredRegions), the "
              "oldest" +
              awaited + ": call poll() until they have let go, or have failed");
}

/// Lets go of a region when all that we have asked for has come: while a device still answers, it
/// needs the memory. A peer that withdraws has a limit on what waits for us, and announced no more
/// regions than there can be.
void StreamBackend::let_go(Rank peer, RemoteRegion& there) noexcept {
  if (device_ == nullptr || core().failing(peer)) return;
  const auto waiting = std::count_if(letting_go_.begin(), letting_go_.end(),
                                     [&](const LettingGo& one) { return one.peer == peer; });
  if (waiting >= kMaxRetiredRegions + kMaxRegions)
    return core().fail_soon(peer, "it withdraws more regions than may wait until they are let go");
  letting_go_.push_back({peer, static_cast<std::uint32_t>(there.number), device_->fetches(peer)});
}

void StreamBackend::let_go_of_theirs() noexcept {
  std::erase_if(letting_go_, [&](const LettingGo& one) {
    if (core().failing(one.peer)) return true;
    if (!device_->finished(one.peer, one.fetches)) return false;
    send_entry(one.peer, {.kind = EntryKind::let_go, .region = one.number});
    if (const Fault fault = count_answer(contacts_[one.peer])) core().fail_soon(one.peer, fault);
    return true;
  });
}

StreamBackend::Fault StreamBackend::take_let_go(Rank from, const EntryHead& head) {
  if (device_ == nullptr) return kNoDevice;
  for (Retired& retired : retired_) {
    if (retired.memory->number != head.region) continue;
    for (Retired::User& user : retired.users) {
      if (user.peer != from || user.let_go) continue;
      user.let_go = true;
      return nullptr;  // poll() does the rest
    }
  }
  return "it let go of a region that was not withdrawn";
}

// --- sleeping ------------------------------------------------------------------------------------

void StreamBackend::publish_dozing(bool dozes) noexcept {
  dozing_ = dozes;
  for (Rank peer = 0; peer < members_; ++peer)
    if (contacts_[peer].greets && !core().failing(peer)) say_dozing(peer, dozes);
  if (!core().polling() && !unsent_.empty()) send_all();
}

void StreamBackend::say_dozing(Rank peer, bool dozes) noexcept {
  if (dozes && ++contacts_[peer].notes_awaited == 1) ++unnoted_;
  send_entry(peer, {.kind = EntryKind::dozing, .value = dozes ? std::uint64_t{1} : 0});
}

void StreamBackend::doze() noexcept {
  last_doze_ns_ = core().recent_ns();
  if (!dozing_ && device_->abilities().ordered_writes) publish_dozing(true);
}

void StreamBackend::stay_awake() noexcept {
  if (core().recent_ns() - last_doze_ns_ > kWakefulNs) publish_dozing(false);
}

StreamBackend::Fault StreamBackend::take_dozing(Rank from, Contact& contact,
                                                const EntryHead& head) {
  if (device_ == nullptr) return kNoDevice;
  if (head.value > 1) return "it dozes more than one can";
  if (contact.dozes == (head.value == 1)) return "it says again whether it dozes";
  contact.dozes = head.value == 1;
  if (!contact.dozes) return nullptr;
  send_entry(from, {.kind = EntryKind::noted});
  return count_answer(contact);
}

StreamBackend::Fault StreamBackend::take_noted(Contact& contact) {
  if (device_ == nullptr) return kNoDevice;
  if (contact.notes_awaited == 0) return "it noted what was not said";
  if (--contact.notes_awaited == 0) --unnoted_;
  return nullptr;
}

/// Ends the waits for a peer that has failed.
void StreamBackend::forget_device_of(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  device_->give_up(peer, *this);
  if (std::exchange(contact.notes_awaited, 0) > 0) --unnoted_;
  free_retired();
}

}  // namespace dunlin::stream
