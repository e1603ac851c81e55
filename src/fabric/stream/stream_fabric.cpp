#include "fabric/stream/stream_fabric.hpp"

#include <algorithm>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace dunlin::stream {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
/// What recent_ns() lags behind at most, while polled.
constexpr std::uint64_t kLookIntervalNs = 100'000;

constexpr Properties kProperties{.passive_target = false,
                                 .ordered_placement = true,
                                 .native_atomics = false,
                                 .atomics_coherent_with_cpu = true,
                                 .max_inline_bytes = kMaxCopiedBytes,
                                 .max_peers = kMaxStreamMembers,
                                 .queue_slots = kQueueSlots};

/// A device that does everything by itself needs no processor of the target.
Properties properties_with(const Reach* reach) {
  Properties properties = kProperties;
  if (reach == nullptr) return properties;
  const Reach::Abilities& able = reach->abilities();
  properties.passive_target =
      able.ordered_writes && able.partial_words && able.reads && able.atomics;
  properties.native_atomics = able.atomics;
  properties.atomics_coherent_with_cpu = !able.atomics || able.atomics_coherent_with_cpu;
  properties.max_inline_bytes = able.max_inline_bytes;
  properties.queue_slots = able.queue_slots;
  return properties;
}

void listen_for(const Descriptor& epoll, const Descriptor& what) {
  epoll_event event{};
  event.events = EPOLLIN;
  checked(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &event), "watching a descriptor");
}

}  // namespace

StreamFabric::StreamFabric(Attachment attachment)
    : kind_(std::move(attachment.kind)),
      description_(std::move(attachment.description)),
      host_members_(attachment.host_members),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "making an epoll descriptor")),
      bell_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "making an eventfd")),
      timer_(
          checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "making a timer")),
      transport_(std::move(attachment.transport)),
      reach_(transport_->reach()),
      presence_({.owner_rank = attachment.rank,
                 .members = static_cast<std::uint32_t>(attachment.names.size()),
                 .fabric = kind_,
                 .group = attachment.group,
                 .member = attachment.names[attachment.rank]}),
      members_(static_cast<std::uint32_t>(attachment.names.size())),
      remotes_(attachment.names.size() * kMaxRegions),
      locals_(kMaxRegions),
      generations_(kMaxRegions),
      their_proofs_(std::move(attachment.their_proofs)),
      silence_timeout_ns_(attachment.silence_timeout_ms * kNsPerMs),
      formed_by_ns_(attachment.formed_by_ns),
      detector_(members_, silence_timeout_ns_, StreamFabric::now_ns()),
      look_timer_(kLookIntervalNs, StreamFabric::now_ns()) {
  rank_ = attachment.rank;
  group_ = std::move(attachment.group);
  properties_ = properties_with(reach_);
  if (reach_ != nullptr) {
    const Reach::Abilities& able = reach_->abilities();
    awaits_answers_ = able.ordered_writes || able.reads || able.atomics;
  }
  recent_ns_ = StreamFabric::now_ns();
  peers_.resize(members_);
  unsent_.reserve(members_);
  contacts_.reserve(members_);
  listen_for(epoll_, bell_);
  listen_for(epoll_, timer_);
  transport_->watch(epoll_.get());
  for (Rank peer = 0; peer < members_; ++peer) {
    peers_[peer].name = std::move(attachment.names[peer]);
    contacts_.emplace_back(*transport_, peer);
    if (peer != rank_) say_hello(peer, attachment.our_proofs[peer], attachment.silence_timeout_ms);
  }
}

StreamFabric::~StreamFabric() {
  if (getpid() != process_) {  // a forked child: sockets and devices are its parent's
    static_cast<void>(transport_.release());
    return;
  }
  for (Rank peer = 0; peer < members_; ++peer) {
    if (peer == rank_ || contacts_[peer].failing) continue;
    say(peer, {.kind = EntryKind::leave});
    contacts_[peer].outbox.flush();
  }
  transport_.reset();  // before the memory that devices reach
}

bool StreamFabric::connected(Rank peer, RegionId region) const noexcept {
  return peer < size() && region.index < kMaxRegions &&
         remotes_[peer * kMaxRegions + region.index].number != 0;
}

/// S7: the first entry. It leaves at once, because the peer applies nothing before it.
void StreamFabric::say_hello(Rank peer, const Proof& proof, std::uint32_t silence_timeout_ms) {
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

/// An entry without a payload that must not be refused.
void StreamFabric::say(Rank peer, const EntryHead& head) {
  Contact& contact = contacts_[peer];
  static_cast<void>(contact.outbox.insist(sizeof head));
  begin_entry(contact.outbox.take(sizeof head), head);
  mark_unsent(peer);
}

void StreamFabric::mark_unsent(Rank peer) noexcept {
  Contact& contact = contacts_[peer];
  if (contact.unsent) return;
  contact.unsent = true;
  unsent_.push_back(peer);
}

/// Outside of poll() a frame leaves at once if none is under way; otherwise it waits and grows
/// until the next poll(), as with Nagle's algorithm. So a single signal is not delayed, and many
/// cost one frame.
void StreamFabric::send_if_idle(Rank peer) noexcept {
  if (polling_ || peer == rank_ || !transport_->idle(peer)) return;
  contacts_[peer].outbox.flush();
}

void StreamFabric::send_all() noexcept {
  std::size_t kept = 0;
  for (const Rank peer : unsent_) {
    Contact& contact = contacts_[peer];
    contact.unsent = false;
    if (contact.failing) continue;
    if (contact.outbox.waiting_frames() > 0) contact.outbox.flush();
    const bool writes = contact.writing.unfinished && still_writing(contact);
    if (contact.outbox.waiting_frames() == 0) {
      tell_placed(contact);
      tell_heard(contact);
      contact.outbox.flush();
    }
    if (contact.outbox.empty() && !writes) continue;
    contact.unsent = true;
    unsent_[kept++] = peer;
  }
  unsent_.resize(kept);
}

std::size_t StreamFabric::poll() noexcept {
  if (polling_) return 0;
  polling_ = true;
  handled_ = 0;
  const std::uint64_t ticks = read_ticks();
  const bool looks = look_timer_.over(ticks);
  if (looks) {
    look_at_clock(ticks);
    transport_->look_around(recent_ns_);
  }
  transport_->progress(*this);
  if (must_drain_) drain_all();
  if (must_match_) match_offers();
  if (!retired_.empty()) free_retired();
  if (!letting_go_.empty()) let_go_of_theirs();
  if (dozing_) stay_awake();
  if (!doomed_.empty())
    for (auto& [peer, how] : std::exchange(doomed_, {})) fail(peer, how);
  if (must_tell_expelled()) handled_ += tell_expelled();
  if (looks) watch();
  if (!unsent_.empty()) send_all();
  polling_ = false;
  return handled_;
}

}  // namespace dunlin::stream
