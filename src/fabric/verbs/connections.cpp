#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>

#include "fabric/rendezvous/address.hpp"
#include "fabric/verbs/verbs_transport.hpp"

/// The lower rank connects, the higher one accepts; but a newcomer connects to the members that
/// were here before (STR-J1). A connection request carries the rank that connects, and its proof
/// (STR-S7), so that no stranger is answered; the frames prove it again, in both directions.
namespace dunlin::verbs {
namespace {

constexpr int kResolveMs = 2'000;
constexpr std::uint64_t kPatienceNs = 20'000'000;  // between two looks at the events
constexpr std::uint64_t kPauseNs = 20'000'000;     // before we call again
constexpr int kBacklog = 2 * kRoomForMembers;
constexpr int kPorts = 8;  // ports to try, if TCP uses some already (iWARP)
/// How many bytes a device is asked to send along in a request, the most first.
constexpr std::array<std::uint32_t, 6> kInlineBytes{256, 220, 128, 64, 48, 0};
/// A lost packet is sent again after 4 us * 2^15: 134 ms. (The default for RoCE is two seconds.)
constexpr std::uint8_t kAcknowledgeTimeout = 15;
/// Soft-iWARP gives each queue of a process a range of addresses to map it by, the first that is
/// free, and its library takes one that begins at 0x90000 for the sign of a failure. So our first
/// queue, of completions of 32 bytes, covers it.
constexpr std::uint32_t kCoveringEntries = 0x90000 / 32;

void make_nonblocking(int descriptor) {
  checked(fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK), "fcntl");
}

std::uint32_t at_most(int limit, std::uint32_t wanted) noexcept {
  return limit <= 0 ? wanted : std::min(static_cast<std::uint32_t>(limit), wanted);
}

}  // namespace

VerbsTransport::VerbsTransport(const Network& network, std::uint32_t members)
    : network_(network),
      events_(made(rdma_create_event_channel(), "asking the kernel for RDMA connections")),
      links_(members) {
  spent_.reserve(std::size_t{members} * kFrames);
  owed_.reserve(std::size_t{2} * members);
  listen(std::max(kBacklog, static_cast<int>(2 * members)));
  make_nonblocking(events_->fd);
  traits_ = examine(*listener_->verbs, listener_->port_num);
  domain_.reset(made(ibv_alloc_pd(listener_->verbs), "making a protection domain"));
  make_queues(members);
}

void VerbsTransport::listen(int backlog) {
  auto* const address = reinterpret_cast<sockaddr*>(&network_.place.socket_address);
  for (int port = 1;; ++port) {
    listener_ = new_id(events_.get());
    done(rdma_bind_addr(listener_.get(), address), "binding to " + network_.place.address);
    if (rdma_listen(listener_.get(), backlog) == 0) return;
    if (errno != EADDRINUSE || port == kPorts) done(-1, "listening");
  }
}

/// Makes the queues, with as many slots for each peer as the completion queue can hold completions
/// of (VRB-V5).
void VerbsTransport::make_queues(std::uint32_t members) {
  channel_.reset(made(ibv_create_comp_channel(listener_->verbs), "making a completion channel"));
  make_nonblocking(channel_->fd);
  const std::uint32_t most = at_most(traits_.limits.max_cqe, UINT32_MAX);
  const std::uint32_t possible = most / (kMinSlots + kReceives);
  most_members_ = std::max(members, std::min(kRoomForMembers, possible > 0 ? possible - 1 : 0));
  const std::uint32_t each = most / (most_members_ + 1);
  slots_ = std::min(at_most(traits_.limits.max_qp_wr, kMaxSlots),
                    each > kReceives ? each - kReceives : 0);
  if (slots_ < kMinSlots)
    throw Error("the device has completion queues of " + std::to_string(traits_.limits.max_cqe) +
                " entries (max_cqe) and send queues of " +
                std::to_string(traits_.limits.max_qp_wr) + " (max_qp_wr): too few for " +
                std::to_string(members) + " members, which need " +
                std::to_string((kMinSlots + kReceives) * (members + 1)) + " and " +
                std::to_string(kMinSlots));
  const std::uint32_t least = traits_.is_iwarp && traits_.in_software ? kCoveringEntries : 1;
  const auto entries =
      static_cast<int>(std::max((slots_ + kReceives) * (most_members_ + 1), least));
  completions_.reset(made(ibv_create_cq(listener_->verbs, entries, nullptr, channel_.get(), 0),
                          "making a completion queue of " + std::to_string(entries) + " entries"));
  abilities_.ordered_writes = !traits_.is_iwarp;
  abilities_.partial_words = !traits_.in_software;
  abilities_.reads = !(traits_.is_iwarp && traits_.in_software);
  abilities_.atomics = traits_.atomics && !network_.atomics_by_processor;
  abilities_.atomics_coherent_with_cpu = traits_.atomics_coherent_with_cpu;
  abilities_.queue_slots = slots_ - kReservedSlots;
}

std::string VerbsTransport::description() const {
  const char* const atomics = !abilities_.atomics                 ? "by message"
                              : traits_.atomics_coherent_with_cpu ? "native"
                                                                  : "native, not with the CPU's";
  const std::string danger = network_.danger.empty() ? "" : "; " + network_.danger;
  return "verbs on " + network_.place.device + " (" + traits_.kind +
         (traits_.in_software ? ", in software" : "") + "), address " + network_.place.address +
         " (" + network_.why + "), atomics " + atomics + ", " + std::to_string(slots_) +
         " slots a peer, " + std::to_string(inline_bytes_) + " bytes inline" + danger;
}

std::vector<std::byte> VerbsTransport::endpoint_address() const {
  const sockaddr* const address = rdma_get_local_addr(listener_.get());
  const std::size_t bytes =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::vector<std::byte> made_endpoint_address(bytes);
  std::memcpy(made_endpoint_address.data(), address, bytes);
  return made_endpoint_address;
}

/// Makes a queue pair. librdmacm writes into the attributes, so each attempt has its own. A device
/// refuses a size that it cannot send inline.
void VerbsTransport::create_pair(rdma_cm_id& id, std::uint32_t slots, std::uint32_t receives) {
  for (const std::uint32_t inline_bytes : kInlineBytes) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = completions_.get();
    wanted.recv_cq = completions_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = slots;
    wanted.cap.max_recv_wr = receives;
    wanted.cap.max_send_sge = 1;
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = inline_bytes;
    if (rdma_create_qp(&id, domain_.get(), &wanted) == 0) {
      inline_bytes_ = pairs_++ == 0 ? wanted.cap.max_inline_data
                                    : std::min(inline_bytes_, wanted.cap.max_inline_data);
      abilities_.max_inline_bytes = inline_bytes_;
      return;
    }
  }
  throw Error("making a queue pair with " + std::to_string(slots) + " slots on " +
              network_.place.device + " failed: " + error_text(errno));
}

void VerbsTransport::open_link(Rank peer, rdma_cm_id& id) {
  Link& link = links_[peer];
  std::uint8_t timeout = kAcknowledgeTimeout;  // unused by iWARP, which has TCP's
  static_cast<void>(
      rdma_set_option(&id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout));
  create_pair(id, slots_, kReceives);
  constexpr std::size_t kFramesBytes = (kFrames + kReceives) * kBufferBytes;
  if (!link.pages) {
    const std::size_t bytes = kFramesBytes + kStagingBytes;
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw Error("no memory for frames: " + error_text(errno));
    link.pages = Pages(static_cast<std::byte*>(at), {bytes});
    const std::span all(link.pages.get(), bytes);
    link.frames =
        register_memory(all.first(kFramesBytes), IBV_ACCESS_LOCAL_WRITE, "frames of a peer");
    // On iWARP, the answers to our reads are writes, as if a peer wrote.
    const int answers = traits_.is_iwarp ? IBV_ACCESS_REMOTE_WRITE : 0;
    link.staging = register_memory(all.subspan(kFramesBytes), IBV_ACCESS_LOCAL_WRITE | answers,
                                   "staging of a peer");
  }
  constexpr std::uint64_t kGeneration = std::uint64_t{1} << kGenerationShift;
  constexpr std::uint64_t kPeer = std::uint64_t{1} << kPeerShift;
  link.tag = peer * kPeer + (link.tag + kGeneration) % kPeer;
  link.queue = SendQueue();
  link.queue.open(id.qp, slots_, {link.pages.get() + kFramesBytes, kStagingBytes},
                  link.staging->lkey);
  link.free.clear();
  for (std::uint32_t i = 0; i < kFrames; ++i)
    link.free.push_back(link.pages.get() + i * kBufferBytes);
  for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(peer, i);
}

rdma_conn_param VerbsTransport::parameters(const Depths& depths, const Ticket* ticket) noexcept {
  rdma_conn_param made_parameters{};
  made_parameters.private_data = ticket;
  made_parameters.private_data_len = ticket == nullptr ? 0 : sizeof(Ticket);
  made_parameters.responder_resources = depths.responder;
  made_parameters.initiator_depth = depths.initiator;
  made_parameters.retry_count = 7;
  made_parameters.rnr_retry_count = 7;
  return made_parameters;
}

void VerbsTransport::call(Rank peer) {
  Link& link = links_[peer];
  link.call_again_ns = 0;
  link.id = new_id(events_.get());
  sockaddr_storage from = network_.place.socket_address;
  sockaddr_storage to{};
  std::memcpy(&to, link.endpoint_address.data(), std::min(link.endpoint_address.size(), sizeof to));
  done(rdma_resolve_addr(link.id.get(), reinterpret_cast<sockaddr*>(&from),
                         reinterpret_cast<sockaddr*>(&to), kResolveMs),
       "looking for the way to " + who(peer));
}

/// Whether a caller may connect. This member also calls and answers itself, for a connection to its
/// own queue pair.
bool VerbsTransport::is_welcome(const Happening& event) const {
  const Rank from = event.ticket.from;
  if (!event.has_ticket || from >= links_.size()) return false;
  const Link& link = links_[from];
  const bool awaited = from == rank_ ? link.caller == Caller::we : link.caller == Caller::they;
  return awaited && !link.ended && stream::same_proof(event.ticket.proof, link.theirs);
}

void VerbsTransport::answer(const Happening& event) {
  Id id(event.id);
  if (!is_welcome(event)) {
    static_cast<void>(rdma_reject(id.get(), nullptr, 0));
    return;
  }
  const Rank from = event.ticket.from;
  rdma_conn_param ours = parameters(agreed(depths_of(traits_.limits), event.offered), nullptr);
  if (from == rank_) {
    mirror_.reset();
    create_pair(*id, 1, 1);
    done(rdma_accept(id.get(), &ours), "answering ourselves");
    mirror_ = std::move(id);
    return;
  }
  Link& link = links_[from];
  link.id = std::move(id);  // an earlier call of the same peer ends
  link.may_speak = false;
  open_link(from, *link.id);
  if (rdma_accept(link.id.get(), &ours) != 0) not_yet(from, "answering: " + error_text(errno));
}

/// Ends a failed attempt: the peer was busy, has taken us for absent, or has not admitted us yet.
/// The side that connects tries again, until the time is up.
void VerbsTransport::not_yet(Rank peer, std::string why) {
  Link& link = links_[peer];
  link.why = std::move(why);
  link.queue = SendQueue();
  link.id.reset();
  if (link.caller == Caller::we) link.call_again_ns = read_clock_ns(CLOCK_MONOTONIC) + kPauseNs;
}

void VerbsTransport::call_again() {
  const std::uint64_t now = read_clock_ns(CLOCK_MONOTONIC);
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].call_again_ns != 0 && links_[peer].call_again_ns <= now) call(peer);
}

/// Marks the connection as made: from now on no other process is taken for the peer.
void VerbsTransport::stand(Rank peer) noexcept {
  Link& link = links_[peer];
  if (link.connected) return;
  link.connected = true;
  link.caller = Caller::nobody;
  link.ours = link.theirs = {};
  if (works_) arrived_.push_back(peer);
}

/// Reads the next event; false if nothing has happened.
bool VerbsTransport::next_happening(Happening& event) {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(events_.get(), &raw) != 0) return false;
  const rdma_conn_param& along = raw->param.conn;
  event = {.what = raw->event, .id = raw->id, .status = raw->status};
  event.offered = {along.initiator_depth, along.responder_resources};
  if (raw->event == RDMA_CM_EVENT_CONNECT_REQUEST && along.private_data != nullptr &&
      along.private_data_len >= sizeof event.ticket) {
    std::memcpy(&event.ticket, along.private_data, sizeof event.ticket);
    event.has_ticket = true;
  }
  rdma_ack_cm_event(raw);
  return true;
}

void VerbsTransport::take(const Happening& event) {
  if (event.what == RDMA_CM_EVENT_CONNECT_REQUEST) return answer(event);
  if (mirror_ && event.id == mirror_.get()) return;
  const Rank peer = peer_of(event.id);
  if (peer < links_.size()) go_on(peer, event);
}

void VerbsTransport::go_on(Rank peer, const Happening& event) {
  Link& link = links_[peer];
  const Ticket ticket{rank_, link.caller == Caller::we ? link.ours : stream::Proof{}};
  switch (event.what) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      done(rdma_resolve_route(event.id, kResolveMs), "looking for the route to " + who(peer));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      open_link(peer, *event.id);
      rdma_conn_param ours = parameters(depths_of(traits_.limits), &ticket);
      if (rdma_connect(event.id, &ours) != 0) not_yet(peer, "calling: " + error_text(errno));
      return;
    }
    case RDMA_CM_EVENT_ESTABLISHED:
      stand(peer);
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      not_yet(peer,
              std::string(rdma_event_str(event.what)) + " (" + std::to_string(event.status) + ")");
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      end(peer, "its connection closed while the group was forming");
      return;
    default:
      return;
  }
}

std::string VerbsTransport::who(Rank peer) const {
  const std::string& at = links_[peer].at;
  return "member " + std::to_string(peer) + (at.empty() ? "" : " at " + at);
}

std::vector<Rank> VerbsTransport::unconnected() const {
  std::vector<Rank> all;
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].caller != Caller::nobody) all.push_back(peer);
  return all;
}

std::string VerbsTransport::missing() const {
  std::string all;
  for (const Rank peer : unconnected()) {
    all += (all.empty() ? "" : ", ") + who(peer);
    if (!links_[peer].why.empty()) all += " [" + links_[peer].why + "]";
  }
  return all;
}

void VerbsTransport::expect(Rank peer, Caller caller, std::span<const std::byte> endpoint_address,
                            const stream::Proof& ours, const stream::Proof& theirs) {
  Link& link = links_[peer];
  link.at = rendezvous::address_text(endpoint_address);
  link.ours = ours;
  link.theirs = theirs;
  link.caller = caller;
  if (caller == Caller::we)
    link.endpoint_address.assign(endpoint_address.begin(), endpoint_address.end());
}

void VerbsTransport::connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                             std::span<const stream::Proof> ours,
                             std::span<const stream::Proof> theirs, std::uint64_t deadline_ns) {
  rank_ = rank;
  deadline_ns_ = deadline_ns;
  for (Rank peer = 0; peer < links_.size(); ++peer) {
    const bool we_call = peer > rank_ || (peer == rank_ && needs_mirror());
    const Caller caller = we_call ? Caller::we : peer < rank_ ? Caller::they : Caller::nobody;
    expect(peer, caller, endpoint_addresses[peer], ours[peer], theirs[peer]);
    if (peer == rank_ && !we_call) links_[peer].connected = true;
    if (we_call) call(peer);
  }
}

void VerbsTransport::enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                           std::span<const stream::Proof> ours,
                           std::span<const stream::Proof> theirs, std::span<const Rank> absent) {
  rank_ = rank;
  enters_ = true;
  deadline_ns_ = UINT64_MAX;
  grow(endpoint_addresses.size(), absent.size());
  passed_over_ = absent.size();
  for (Rank peer = 0; peer < links_.size(); ++peer) {
    if (std::ranges::find(absent, peer) != absent.end()) continue;
    const bool we_call = peer < rank_ || (peer == rank_ && needs_mirror());
    const Caller caller = we_call ? Caller::we : peer > rank_ ? Caller::they : Caller::nobody;
    expect(peer, caller, endpoint_addresses[peer], ours[peer], theirs[peer]);
    if (peer == rank_ && !we_call) links_[peer].connected = true;
    if (we_call) call(peer);
  }
}

/// Makes room for so many ranks. Ranks whose members have gone need none.
void VerbsTransport::grow(std::size_t ranks, std::size_t gone) {
  if (ranks - gone > most_members_)
    throw Error(network_.place.device + " has completion queues for " +
                std::to_string(most_members_) + " members at a time, with " +
                std::to_string(slots_) + " slots each: there would be " +
                std::to_string(ranks - gone));
  links_.resize(ranks);
  spent_.reserve(std::size_t{most_members_} * kFrames);
  owed_.reserve(std::size_t{2} * most_members_);
}

std::vector<std::byte> VerbsTransport::endpoint() {
  if (!listener_) listen(kBacklog);
  return endpoint_address();
}

void VerbsTransport::admit(Rank first, std::span<const stream::Newcomer> newcomers) {
  static_cast<void>(endpoint());
  const auto closed = static_cast<std::size_t>(
      std::ranges::count_if(links_, [](const Link& link) { return link.closed; }));
  const std::size_t never = passed_over_ + first - links_.size();
  grow(first + newcomers.size(), closed + never);
  passed_over_ = never;
  for (std::size_t i = 0; i < newcomers.size(); ++i)
    expect(first + static_cast<Rank>(i), Caller::they, newcomers[i].endpoint, newcomers[i].ours,
           newcomers[i].theirs);
}

bool VerbsTransport::is_on_this_host(std::span<const std::byte> endpoint) const {
  return listener_ && same_host(endpoint, endpoint_address());
}

bool VerbsTransport::connected() {
  Happening event;
  while (next_happening(event)) take(event);
  call_again();
  if (unconnected().empty()) {
    if (!enters_) listener_.reset();  // no other member can come yet
    works_ = true;
    return true;
  }
  if (read_clock_ns(CLOCK_MONOTONIC) < deadline_ns_) return false;
  throw Error("the members have met, but there is no connection to " + missing() +
              ": are all on the same RDMA network, and did nobody choose a device or address "
              "(JoinOptions) that the others cannot reach?");
}

Awaited VerbsTransport::awaited() const {
  Awaited news;
  news.by(std::min(deadline_ns_, read_clock_ns(CLOCK_MONOTONIC) + kPatienceNs));
  news.descriptors.push_back({events_->fd, POLLIN, 0});
  return news;
}

}  // namespace dunlin::verbs
