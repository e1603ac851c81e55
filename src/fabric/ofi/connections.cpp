#include <algorithm>
#include <array>
#include <cstring>

#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/system.hpp"

/// The lower rank connects, the higher one accepts; but a newcomer connects to the members that
/// were here before (STR-J1). A connection request carries the rank that connects, and its proof
/// (STR-S7), so that no stranger is answered; the frames prove it again, in both directions.
namespace dunlin::ofi {
namespace {

constexpr std::size_t kEventQueueSlots = 64;
constexpr std::size_t kMaxAddressBytes = 256;
/// The longest time between two looks at the event queue, whatever its descriptor says.
constexpr std::uint64_t kPatienceNs = 20'000'000;
/// The shortest pause before a newcomer connects again to a member that has refused it.

/// A connection event of libfabric, followed by the data that the caller sent.
struct ConnectionEvent {
  static constexpr std::size_t kMaxSentAlong = 256;
  alignas(fi_eq_cm_entry) std::array<std::byte, sizeof(fi_eq_cm_entry) + kMaxSentAlong> bytes{};

  [[nodiscard]] fi_eq_cm_entry& entry() noexcept {
    return *reinterpret_cast<fi_eq_cm_entry*>(bytes.data());
  }
  [[nodiscard]] std::span<const std::byte> sent_along(std::size_t event_bytes) const noexcept {
    return std::span(bytes).first(event_bytes).subspan(sizeof(fi_eq_cm_entry));
  }
};

template <class Attributes, class Object, class Domain, class Open>
Fid<Object> open_queue(Open open, Domain* on, Attributes attributes, const char* what) {
  Object* made = nullptr;
  checked(open(on, &attributes, &made, nullptr), std::string("opening libfabric's ") + what);
  return Fid<Object>(made);
}

}  // namespace

OfiTransport::OfiTransport(Network& network, std::uint32_t members)
    : info_(std::move(network.info)), watches_buffers_(network.fills_in_order), links_(members) {
  constexpr std::size_t kMost = kMaxStreamMembers;  // at a time, however many are here
  fid_fabric* fabric = nullptr;
  checked(libfabric().fabric(info_->fabric_attr, &fabric, nullptr), "opening libfabric's fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  checked(fi_domain(fabric, info_.get(), &domain, nullptr), "opening libfabric's domain");
  domain_.reset(domain);
  fi_eq_attr events{};
  events.size = std::max(kEventQueueSlots, 4 * kMost);
  events.wait_obj = FI_WAIT_FD;
  events_ = open_queue<fi_eq_attr, fid_eq>(fi_eq_open, fabric, events, "event queue");
  fi_cq_attr completions{};
  completions.size = 4 * kBuffersEachWay * kMost;
  completions.format = FI_CQ_FORMAT_MSG;
  completions.wait_obj = FI_WAIT_FD;
  completions_ =
      open_queue<fi_cq_attr, fid_cq>(fi_cq_open, domain, completions, "completion queue");
  listen();
}

void OfiTransport::listen() {
  fid_pep* listener = nullptr;
  checked(fi_passive_ep(fabric_.get(), info_.get(), &listener, nullptr),
          "opening a passive endpoint");
  Fid<fid_pep> made(listener);
  checked(fi_pep_bind(listener, &events_->fid, 0), "binding a passive endpoint");
  checked(fi_listen(listener), "listening");
  listener_ = std::move(made);
}

std::vector<std::byte> OfiTransport::endpoint() {
  if (!listener_) listen();
  return endpoint_address();
}

std::vector<std::byte> OfiTransport::endpoint_address() const {
  std::size_t bytes = 0;
  static_cast<void>(fi_getname(&listener_->fid, nullptr, &bytes));
  std::vector<std::byte> name(bytes);
  checked(fi_getname(&listener_->fid, name.data(), &bytes), "asking libfabric for our address");
  name.resize(bytes);
  return name;
}

fid_ep* OfiTransport::open_endpoint(Rank peer, fi_info* info) {
  Link& link = links_[peer];
  fid_ep* endpoint = nullptr;
  checked(fi_endpoint(domain_.get(), info, &endpoint, nullptr), "opening an endpoint");
  link.endpoint.reset(endpoint);
  const std::uint64_t receives =
      watches_buffers_ ? FI_RECV | FI_SELECTIVE_COMPLETION : std::uint64_t{FI_RECV};
  checked(fi_ep_bind(endpoint, &completions_->fid, FI_SEND), "binding an endpoint");
  checked(fi_ep_bind(endpoint, &completions_->fid, receives), "binding an endpoint");
  checked(fi_ep_bind(endpoint, &events_->fid, 0), "binding an endpoint");
  checked(fi_enable(endpoint), "enabling an endpoint");
  return endpoint;
}

void OfiTransport::make_buffers(Rank peer) {
  Link& link = links_[peer];
  const std::size_t bytes = link.buffers.size() * kBufferBytes;
  link.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
    fid_mr* registration = nullptr;
    checked(fi_mr_reg(domain_.get(), link.memory.get(), bytes, FI_SEND | FI_RECV, 0, peer, 0,
                      &registration, nullptr),
            "registering " + std::to_string(bytes) +
                " bytes with the network (see 'ulimit -l', the limit of locked memory)");
    link.registration.reset(registration);
  }
  for (std::size_t i = 0; i < link.buffers.size(); ++i) {
    Buffer& buffer = link.buffers[i];
    buffer.bytes = link.memory.get() + i * kBufferBytes;
    buffer.peer = peer;
    buffer.receives = i >= kBuffersEachWay;
    if (buffer.receives)
      post_receive(buffer);
    else
      link.free.push_back(&buffer);
  }
}

void OfiTransport::call(Rank peer) {
  Link& link = links_[peer];
  link.call_again_ns = UINT64_MAX;
  if (link.endpoint_address.empty() || link.endpoint_address.size() > kMaxAddressBytes)
    throw Error(who(peer) + " says no address that a network could have");
  // The provider believes the length that the address itself contains.
  std::array<std::byte, kMaxAddressBytes> address{};
  std::copy(link.endpoint_address.begin(), link.endpoint_address.end(), address.begin());
  const Ticket ticket{rank_, link.ours};
  fid_ep* const endpoint = open_endpoint(peer, info_.get());
  checked(fi_connect(endpoint, address.data(), &ticket, sizeof ticket),
          "connecting to " + who(peer));
}

void OfiTransport::call_again() {
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].call_again_ns <= now_ns) call(peer);
}

bool OfiTransport::is_welcome(const Happening& call) const {
  if (!call.has_ticket || call.ticket.from >= links_.size()) return false;
  const Link& link = links_[call.ticket.from];
  return link.caller == Caller::they && !link.endpoint && !link.ended &&
         stream::same_proof(call.ticket.proof, link.theirs);
}

void OfiTransport::refuse(const Happening& call) const noexcept {
  if (listener_) static_cast<void>(fi_reject(listener_.get(), call.info->handle, nullptr, 0));
}

void OfiTransport::answer(const Happening& call) {
  if (!is_welcome(call)) return refuse(call);
  const Rank from = call.ticket.from;
  checked(fi_accept(open_endpoint(from, call.info.get()), nullptr, 0), "accepting " + who(from));
}

/// Marks the connection as made: from now on no other process is taken for the peer. An attempt
/// that has failed has posted no buffers.
void OfiTransport::stand(Rank peer) {
  Link& link = links_[peer];
  make_buffers(peer);
  link.caller = Caller::nobody;
  link.ours = link.theirs = {};
  link.connected = true;
  standing_.push_back(&link);
}

/// Ends an attempt that has failed. Its remains name an endpoint that no longer exists.
void OfiTransport::not_yet(Rank peer) noexcept {
  Link& link = links_[peer];
  link.endpoint.reset();
  if (link.caller != Caller::we) return;
  link.call_again_ns = link.pauses.after(read_clock_ns(CLOCK_MONOTONIC));
}

/// Reads the next event; false if nothing has happened.
bool OfiTransport::next_happening(Happening& happening) {
  ConnectionEvent event;
  const ssize_t bytes =
      fi_eq_read(events_.get(), &happening.kind, event.bytes.data(), event.bytes.size(), 0);
  if (bytes == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    checked(fi_eq_readerr(events_.get(), &error, 0), "reading libfabric's event queue");
    happening.kind = 0;
    happening.endpoint = error.fid;
    happening.error = error.err;
    return true;
  }
  if (bytes == -FI_EAGAIN || bytes == -FI_EINTR) return false;
  checked(bytes, "reading libfabric's event queue");
  happening.endpoint = event.entry().fid;
  if (happening.kind != FI_CONNREQ) return true;
  happening.info.reset(event.entry().info);
  const auto sent_along = event.sent_along(static_cast<std::size_t>(bytes));
  happening.has_ticket = sent_along.size() >= sizeof happening.ticket;
  if (happening.has_ticket)
    std::memcpy(&happening.ticket, sent_along.data(), sizeof happening.ticket);
  return true;
}

/// Handles an event while this member connects.
void OfiTransport::take(const Happening& happening) {
  if (happening.kind == FI_CONNREQ) return answer(happening);
  const Rank peer = peer_of(happening.endpoint);
  if (peer >= links_.size()) return;  // the event of an unknown process
  Link& link = links_[peer];
  if (happening.error == 0 && happening.kind == FI_CONNECTED) return stand(peer);
  if (enters_ && !link.connected) return not_yet(peer);
  if (happening.error != 0 && !enters_)
    throw Error("connecting to " + who(peer) + " failed: " + libfabric().strerror(happening.error));
  if (happening.error != 0)
    fail(peer, "its connection broke", happening.error);
  else if (happening.kind == FI_SHUTDOWN)
    end(peer, "its connection closed while the group was forming");
}

std::string OfiTransport::who(Rank peer) const {
  const std::string& at = links_[peer].at;
  return "member " + std::to_string(peer) + (at.empty() ? "" : " at " + at);
}

std::vector<Rank> OfiTransport::unconnected() const {
  std::vector<Rank> all;
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].caller != Caller::nobody) all.push_back(peer);
  return all;
}

std::string OfiTransport::missing() const {
  std::string all;
  for (const Rank peer : unconnected()) all += (all.empty() ? "" : ", ") + who(peer);
  return all;
}

void OfiTransport::expect(Rank peer, Caller caller, std::span<const std::byte> endpoint_address,
                          const stream::Proof& ours, const stream::Proof& theirs) {
  Link& link = links_[peer];
  link.caller = caller;
  link.ours = ours;
  link.theirs = theirs;
  link.sent = Marks(ours);
  link.received = Marks(theirs);
  link.at = endpoint_address_text(info_->fabric_attr->prov_name, endpoint_address);
  if (caller == Caller::we)
    link.endpoint_address.assign(endpoint_address.begin(), endpoint_address.end());
}

void OfiTransport::connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                           std::span<const stream::Proof> ours,
                           std::span<const stream::Proof> theirs, std::uint64_t deadline_ns) {
  rank_ = rank;
  deadline_ns_ = deadline_ns;
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (peer != rank_)
      expect(peer, peer < rank_ ? Caller::they : Caller::we, endpoint_addresses[peer], ours[peer],
             theirs[peer]);
  for (Rank peer = rank_ + 1; peer < links_.size(); ++peer) call(peer);
}

void OfiTransport::enter(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                         std::span<const stream::Proof> ours, std::span<const stream::Proof> theirs,
                         std::span<const Rank> absent) {
  rank_ = rank;
  enters_ = true;
  deadline_ns_ = UINT64_MAX;
  links_.resize(endpoint_addresses.size());
  for (Rank peer = 0; peer < links_.size(); ++peer) {
    if (peer == rank_ || std::ranges::find(absent, peer) != absent.end()) continue;
    expect(peer, peer < rank_ ? Caller::we : Caller::they, endpoint_addresses[peer], ours[peer],
           theirs[peer]);
    if (peer < rank_) call(peer);
  }
}

void OfiTransport::admit(Rank first, std::span<const stream::Newcomer> newcomers) {
  if (!listener_) listen();
  links_.resize(first + newcomers.size());
  for (std::size_t i = 0; i < newcomers.size(); ++i)
    expect(first + static_cast<Rank>(i), Caller::they, newcomers[i].endpoint, newcomers[i].ours,
           newcomers[i].theirs);
}

bool OfiTransport::is_on_this_host(std::span<const std::byte> endpoint) const {
  if (!listener_) return false;
  const std::array both{endpoint_address(),
                        std::vector<std::byte>(endpoint.begin(), endpoint.end())};
  return count_on_this_host(info_->fabric_attr->prov_name, both, 0) == both.size();
}

bool OfiTransport::connected() {
  for (;;) {
    call_again();
    if (unconnected().empty()) break;
    Happening happening;
    if (next_happening(happening)) {
      take(happening);
      continue;
    }
    if (read_clock_ns(CLOCK_MONOTONIC) < deadline_ns_) return false;
    throw Error("the members have met, but there is no connection to " + missing() +
                ": is a firewall in between, or did one of us give an address that others cannot "
                "reach (JoinOptions::address)?");
  }
  if (!enters_) listener_.reset();  // no other member can come yet
  return true;
}

Awaited OfiTransport::awaited() const {
  Awaited news;
  std::array<fid*, 2> queues{&completions_->fid, &events_->fid};
  const bool may_wait =
      fi_trywait(fabric_.get(), queues.data(), static_cast<int>(queues.size())) == FI_SUCCESS;
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  news.by(std::min(deadline_ns_, may_wait ? now_ns + kPatienceNs : now_ns));
  for (const Link& link : links_) news.by(link.call_again_ns);
  for (const int descriptor : descriptors()) news.descriptors.push_back({descriptor, POLLIN, 0});
  return news;
}

}  // namespace dunlin::ofi
