#include "fabric/shm/entering.hpp"

#include <algorithm>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/entering.hpp"
#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kShortestTryNs = 200'000;
constexpr std::uint64_t kLongestTryNs = 16'000'000;
constexpr std::size_t kMaxCallers = 64;
constexpr std::uint64_t kDescriptorsOfAMember = 4;
constexpr std::uint64_t kOwnDescriptors = 32;

}  // namespace

ShmEntry::ShmEntry(JoinOptions options)
    : options_(std::move(options)),
      access_(access_for(options_.access_group)),
      try_interval_ns_(kShortestTryNs) {}

void ShmEntry::begin(const Entry& entry) {
  check(entry);
  FabricSetup setup;
  take_members(setup, entry);
  const std::size_t peers = entry.members.size() + entry.admission.newcomers.size();
  const std::uint64_t descriptors = kDescriptorsOfAMember * peers + kOwnDescriptors;
  ensure_descriptors(descriptors, descriptors + 2 * kMaxRegions, static_cast<std::uint32_t>(peers));
  self_ = identity_of(entry, std::move(setup.names), options_.silence_timeout_ms);
  bell_ = Descriptor(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "making a doorbell"));
  base_ = make_base(self_, access_, 0);
  links_.resize(self_.members());
  for (const Entry::Member& member : entry.members) begin_link(member.rank, false);
  for (Rank rank = entry.admission.first; rank < self_.members(); ++rank)
    begin_link(rank, rank > self_.rank);
  entry_ = entry;
  deadline_ns_ = read_clock_ns(CLOCK_MONOTONIC) + options_.timeout_ms * kNsPerMs;
  begin_anew();
}

/// The own rank has no socket, and a ring for what this member sends to itself.
void ShmEntry::begin_link(Rank rank, bool calls) {
  if (rank != self_.rank) return awaiting_.push_back({.rank = rank, .calls = calls});
  Link& own = links_[rank];
  own.base = base_.mapping;
  own.inbox = own.outbox = make_ring(self_, access_).mapping;
  own.pid = getpid();
  own.incarnation = self_.incarnation;
  own.silence_timeout_ms = self_.silence_timeout_ms;
  own.needs_fence = !self_.has_barriers;
}

std::unique_ptr<Fabric> ShmEntry::step() {
  if (!entry_) return nullptr;
  if (read_clock_ns(CLOCK_MONOTONIC) >= deadline_ns_)
    give_up("not linked within " + std::to_string(options_.timeout_ms) + " ms to " + missing());
  if (!listener_ && !claim_address()) return nullptr;
  call_all();
  listen();
  std::erase_if(awaiting_, [this](Awaiting& peer) { return hear(peer); });
  return awaiting_.empty() ? make_shm_fabric(attachment()) : nullptr;
}

/// A rank is given once, so that nobody else can have it; unless he means harm.
bool ShmEntry::claim_address() {
  std::optional<Descriptor> listener =
      claim(address_of(access_, self_.group, self_.rank), Holder::is_examined);
  if (listener) listener_ = std::move(*listener);
  return listener.has_value();
}

void ShmEntry::call_all() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  if (now_ns < next_try_ns_) return;
  for (Awaiting& peer : awaiting_)
    if (!peer.calls && !links_[peer.rank].socket) call(peer);
  next_try_ns_ = now_ns + try_interval_ns_;
  try_interval_ns_ = std::min(2 * try_interval_ns_, kLongestTryNs);
}

void ShmEntry::call(Awaiting& peer) {
  std::optional<Descriptor> socket = shm::connect_to(address_of(access_, self_.group, peer.rank));
  if (!socket) return;
  const Counterpart holder = counterpart_of(*socket, access_);
  if (!holder.admitted) return;
  Link& link = links_[peer.rank];
  link.pid = holder.pid;
  link.socket = std::move(*socket);
  if (introduce(link, peer) != Sent::whole) link = Link{};
}

Sent ShmEntry::introduce(Link& link, Awaiting& peer) {
  const OwnMapping inbox = make_ring(self_, access_);
  peer.inbox = inbox.mapping;
  Packet packet = introduction(self_, PacketType::enter);
  packet.value = key_of(entry_->admission);
  return send_packet(link.socket.get(), packet, base_.file.get(), bell_.get(), inbox.file.get());
}

/// True once it is linked. Whoever has not admitted this newcomer yet hangs up: it is called again.
bool ShmEntry::hear(Awaiting& peer) {
  Link& link = links_[peer.rank];
  if (!link.socket) return false;
  if (!link.base) {
    Received received = receive_packet(link.socket.get());
    if (received.kind == Received::Kind::nothing_yet) return false;
    if (received.kind == Received::Kind::packet && received.packet.type == PacketType::refuse)
      give_up(received.packet.text.data());
    const bool fits = received.kind == Received::Kind::packet &&
                      received.packet.type == PacketType::enter &&
                      received.packet.value == key_of(entry_->admission);
    if (!fits || !take_introduction(link, received, self_, peer.rank, std::nullopt).empty()) {
      link = Link{};
      return false;
    }
  }
  link.inbox = std::move(peer.inbox);
  return true;
}

// --- newcomers of higher ranks -------------------------------------------------------------------

void ShmEntry::listen() {
  for (std::size_t i = 0; i < kMaxCallers; ++i) {
    Descriptor socket = take_connection(listener_);
    if (!socket && (errno == EMFILE || errno == ENFILE)) give_up(out_of_descriptors());
    if (!socket) break;
    const Counterpart who = counterpart_of(socket, access_);
    if (!who.admitted) continue;
    if (callers_.size() == kMaxCallers) callers_.erase(callers_.begin());
    callers_.emplace_back(std::move(socket), who.pid);
  }
  std::erase_if(callers_, [this](auto& caller) { return take_call(caller.first, caller.second); });
}

/// False if it has said nothing yet.
bool ShmEntry::take_call(Descriptor& socket, pid_t pid) {
  Received received = receive_packet(socket.get());
  if (received.kind == Received::Kind::nothing_yet) return false;
  const auto peer = std::ranges::find_if(awaiting_, [&](const Awaiting& one) {
    return one.calls && one.rank == received.packet.rank && !links_[one.rank].socket;
  });
  const bool fits = received.kind == Received::Kind::packet && peer != awaiting_.end() &&
                    received.packet.type == PacketType::enter &&
                    received.packet.value == key_of(entry_->admission);
  if (!fits) return true;
  Link link;
  if (!take_introduction(link, received, self_, peer->rank, std::nullopt).empty()) return true;
  link.socket = std::move(socket);
  link.pid = pid;
  if (introduce(link, *peer) == Sent::whole) links_[peer->rank] = std::move(link);
  return true;
}

// --- the end -------------------------------------------------------------------------------------

Attachment ShmEntry::attachment() {
  FabricSetup setup;
  take_members(setup, *entry_);
  return {.self = std::move(self_),
          .access = access_,
          .listener = std::move(listener_),
          .bell = std::move(bell_),
          .base = std::move(base_),
          .links = std::move(links_),
          .absent = std::move(setup.absent)};
}

Awaited ShmEntry::awaited() {
  Awaited news;
  if (!entry_) return news;
  news.by(deadline_ns_);
  news.by(next_try_ns_);
  if (listener_) news.add(listener_);
  for (const Awaiting& peer : awaiting_)
    if (links_[peer.rank].socket) news.add(links_[peer.rank].socket);
  for (const auto& [socket, pid] : callers_) news.add(socket);
  return news;
}

std::string ShmEntry::missing() const {
  std::string all;
  for (const Awaiting& peer : awaiting_)
    all += (all.empty() ? "" : ", ") + member_text(*entry_, peer.rank);
  return all;
}

void ShmEntry::give_up(const std::string& why) const {
  throw Error("member " + self_.who(self_.rank) + " cannot come into group '" + self_.group +
              "': " + why);
}

}  // namespace dunlin::shm
