#include "fabric/stream/stream_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace dunlin::stream {
namespace {

/// How far recent_ns() lags behind at most, while the fabric is polled.
constexpr std::uint64_t kLookIntervalNs = 100'000;
/// Copying so many bytes costs more than a system call.
constexpr std::size_t kWorthAFrameBytes = 32'768;
/// The tag for the arrivals of a part in the core's sleeper, beside what other parts watch.
constexpr std::uint64_t kArrivalsTag = Sleeper::kFirstOwnTag - 1;

constexpr Properties kProperties{.passive_target = false,
                                 .ordered_placement = true,
                                 .native_atomics = false,
                                 .atomics_coherent_with_cpu = true,
                                 .max_inline_bytes = kMaxCopiedBytes,
                                 .max_peers = kMaxStreamMembers,
                                 .queue_slots = kQueueSlots};

/// The properties with a device: one that does everything by itself needs no processor of the
/// target.
Properties properties_with(const DeviceOperations* reach) {
  Properties properties = kProperties;
  if (reach == nullptr) return properties;
  const DeviceOperations::Abilities& able = reach->abilities();
  properties.passive_target =
      able.ordered_writes && able.partial_words && able.reads && able.atomics;
  properties.native_atomics = able.atomics;
  properties.atomics_coherent_with_cpu = !able.atomics || able.atomics_coherent_with_cpu;
  properties.max_inline_bytes = able.max_inline_bytes;
  properties.queue_slots = able.queue_slots;
  return properties;
}

}  // namespace

std::unique_ptr<Fabric> make_stream_fabric(Attachment attachment) {
  FabricSetup setup{.kind = attachment.kind,
                    .description = attachment.description,
                    .group = attachment.group,
                    .rank = attachment.rank,
                    .names = attachment.names,
                    .absent = attachment.absent,
                    .properties = properties_with(attachment.transport->device()),
                    .silence_timeout_ms = attachment.silence_timeout_ms,
                    .sleeper = Sleeper()};
  return make_fabric(std::move(setup), std::make_unique<StreamBackend>(std::move(attachment)));
}

StreamBackend::StreamBackend(Attachment attachment)
    : rank_(attachment.rank),
      our_proofs_(std::move(attachment.our_proofs)),
      prove_(attachment.prove),
      silence_timeout_ms_(attachment.silence_timeout_ms),
      host_members_(attachment.host_members),
      elsewhere_(std::move(attachment.elsewhere)),
      transport_(std::move(attachment.transport)),
      device_(transport_->device()),
      properties_(properties_with(device_)),
      carries_behind_(transport_->carries_behind()),
      members_(static_cast<std::uint32_t>(attachment.names.size())),
      remotes_(attachment.names.size()),
      memories_(kMaxRegions),
      their_proofs_(std::move(attachment.their_proofs)),
      formed_by_ns_(attachment.formed_by_ns),
      look_timer_(kLookIntervalNs, StreamBackend::now_ns()) {
  if (attachment.is_part)
    arrivals_ = Descriptor(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor"));
  else
    registry_ = std::make_unique<mapping::ProcessRegistry>(
        mapping::MappingInfo{.owner_rank = attachment.rank,
                             .members = static_cast<std::uint32_t>(attachment.names.size()),
                             .fabric = attachment.kind,
                             .group = attachment.group,
                             .member = attachment.names[attachment.rank]});
  if (device_ != nullptr) {
    const DeviceOperations::Abilities& able = device_->abilities();
    awaits_answers_ = able.ordered_writes || able.reads || able.atomics;
  }
  unsent_.reserve(members_);
  contacts_.reserve(members_);
  for (Rank peer = 0; peer < members_; ++peer) contacts_.emplace_back(*transport_, peer);
  contacts_[rank_].open();
}

void StreamBackend::start() {
  transport_->watch(arrivals_ ? arrivals_.get() : core().sleeper().epoll());
  if (arrivals_ && !core().sleeper().watch(arrivals_.get(), kArrivalsTag))
    throw Error("watching a network's arrivals failed: " + error_text(errno));
  for (Rank peer = 0; peer < members_; ++peer)
    if (peer != rank_ && !core().failing(peer) &&
        std::ranges::find(elsewhere_, peer) == elsewhere_.end())
      greet_first(peer);
}

StreamBackend::~StreamBackend() {
  if (!has_core()) return;
  if (!core().in_own_process()) {  // in a forked child, sockets and devices are the parent's
    static_cast<void>(transport_.release());
    return;
  }
  for (Rank peer = 0; peer < members_; ++peer) {
    if (!contacts_[peer].greets || core().failing(peer)) continue;
    send_entry(peer, {.kind = EntryKind::leave});
    contacts_[peer].outbox.flush();
  }
  send_rest();
  transport_.reset();  // before the memory that devices reach
}

/// Sends the rest: what callers were told is on its way is not lost with this fabric, if the peers
/// take it in that time (STR-S8). The transport itself sends the frames that it has.
void StreamBackend::send_rest() noexcept {
  const std::uint64_t end_ns = StreamBackend::now_ns() + kFarewellNs;
  const auto is_waiting = [](Contact& contact) {
    contact.outbox.flush();
    return contact.greets && !contact.outbox.empty();
  };
  while (std::ranges::count_if(contacts_, is_waiting) > 0 && StreamBackend::now_ns() < end_ns) {
    std::this_thread::yield();
    transport_->relieve(*this);
  }
}

/// STR-S7: sends the first entry. It leaves at once, because the peer applies nothing before it.
void StreamBackend::send_hello(Rank peer, const Proof& proof, std::uint32_t silence_timeout_ms) {
  Hello hello;
  hello.from = rank_;
  hello.to = peer;
  hello.silence_timeout_ms = silence_timeout_ms;
  hello.proof = proof;
  const EntryHead head{.kind = EntryKind::hello, .bytes = sizeof hello};
  Outbox& outbox = contacts_[peer].outbox;
  static_cast<void>(outbox.insist(entry_bytes(head)));
  std::memcpy(begin_entry(outbox.take(entry_bytes(head)), head), &hello, sizeof hello);
  outbox.flush();
}

/// Sends an entry without a payload that must not be refused.
void StreamBackend::send_entry(Rank peer, const EntryHead& head) {
  Contact& contact = contacts_[peer];
  static_cast<void>(contact.outbox.insist(sizeof head));
  begin_entry(contact.outbox.take(sizeof head), head);
  mark_unsent(peer);
}

void StreamBackend::mark_unsent(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  if (contact.unsent) return;
  contact.unsent = true;
  unsent_.push_back(peer);
}

/// Sends a frame, if that is worthwhile. Outside of poll() a frame leaves at once if none is under
/// way; otherwise it waits and grows until the next poll(), as with Nagle's algorithm. So a single
/// signal is not delayed, and many cost one frame. Many bytes in one post() are worth a frame of
/// their own; a few of them are copied, for the sources may change when post() returns (STR-S3).
/// After a hint that more follows, all of it waits for that, or for the next poll(), and so may the
/// sources.
void StreamBackend::send_if_idle(Rank peer) noexcept {
  Outbox& outbox = contacts_[peer].outbox;
  const std::size_t unsettled = carries_behind_ ? outbox.unsettled_bytes() : 0;
  const bool idle = !core().polling() && peer != rank_ && transport_->idle(peer);
  if (idle || unsettled >= kWorthAFrameBytes)
    outbox.flush();
  else if (unsettled > 0)
    outbox.settle();
}

void StreamBackend::send_all() noexcept {
  std::size_t kept = 0;
  for (const Rank peer : unsent_) {
    Contact& contact = contacts_[peer];
    contact.unsent = false;
    if (core().failing(peer)) continue;
    if (contact.outbox.waiting_frames() > 0) contact.outbox.flush();
    const bool writes = contact.writing.unfinished && still_writing(contact);
    if (contact.outbox.waiting_frames() == 0) {
      report_placed(contact);
      report_received(contact);
      contact.outbox.flush();
    }
    if (contact.outbox.empty() && !writes) continue;
    contact.unsent = true;
    unsent_[kept++] = peer;
  }
  unsent_.resize(kept);
}

std::size_t StreamBackend::poll() noexcept {
  if (!core().begin_poll()) return 0;
  take_arrivals();
  return core().end_poll();
}

void StreamBackend::take_arrivals() noexcept {
  const std::uint64_t ticks = read_ticks();
  const bool looks = look_timer_.over(ticks);
  if (looks) {
    look_at_clock(ticks);
    transport_->look_around(core().recent_ns());
  }
  transport_->progress(*this);
  if (std::exchange(sent_to_self_, false)) drain(rank_);
  if (!retired_.empty()) free_retired();
  if (!letting_go_.empty()) let_go_of_theirs();
  if (dozing_) stay_awake();
  if (core().has_duties()) core().perform_duties();
  if (looks) core().watch();
  if (!unsent_.empty()) send_all();
}

}  // namespace dunlin::stream
