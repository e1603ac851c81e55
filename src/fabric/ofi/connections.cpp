#include <algorithm>
#include <array>
#include <cstring>

#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/system.hpp"

/// The lower rank calls, the higher answers. A call carries who it is from and its proof (STR-S7),
/// so that nobody else is answered; the frames prove it again, in both directions.
namespace dunlin::ofi {
namespace {

constexpr std::size_t kEventQueueSlots = 64;
constexpr std::size_t kMaxAddressBytes = 256;
/// Between two looks at the event queue, whatever its descriptor says.
constexpr std::uint64_t kPatienceNs = 20'000'000;

struct Ticket {
  std::uint32_t from = 0;
  stream::Proof proof{};
};
static_assert(sizeof(Ticket) == 36, "within what every provider takes along with a connection");

/// An event of a connection, with what the caller sent along behind it.
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
  fid_fabric* fabric = nullptr;
  checked(libfabric().fabric(info_->fabric_attr, &fabric, nullptr), "opening libfabric's fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  checked(fi_domain(fabric, info_.get(), &domain, nullptr), "opening libfabric's domain");
  domain_.reset(domain);
  fi_eq_attr events{};
  events.size = std::max<std::size_t>(kEventQueueSlots, 4 * members);
  events.wait_obj = FI_WAIT_FD;
  events_ = open_queue<fi_eq_attr, fid_eq>(fi_eq_open, fabric, events, "event queue");
  fi_cq_attr completions{};
  completions.size = std::max<std::size_t>(64, 4 * kBuffersEachWay * members);
  completions.format = FI_CQ_FORMAT_MSG;
  completions.wait_obj = FI_WAIT_FD;
  completions_ =
      open_queue<fi_cq_attr, fid_cq>(fi_cq_open, domain, completions, "completion queue");
  fid_pep* listener = nullptr;
  checked(fi_passive_ep(fabric, info_.get(), &listener, nullptr), "opening a passive endpoint");
  listener_.reset(listener);
  checked(fi_pep_bind(listener, &events_->fid, 0), "binding a passive endpoint");
  checked(fi_listen(listener), "listening");
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
  return endpoint;
}

void OfiTransport::call(Rank peer, const std::vector<std::byte>& endpoint_address,
                        const stream::Proof& proof) {
  if (endpoint_address.empty() || endpoint_address.size() > kMaxAddressBytes)
    throw Error(who(peer) + " says no address that a network could have");
  // The provider believes the length that is in the address.
  std::array<std::byte, kMaxAddressBytes> address{};
  std::copy(endpoint_address.begin(), endpoint_address.end(), address.begin());
  const Ticket ticket{rank_, proof};
  fid_ep* const endpoint = open_endpoint(peer, info_.get());
  checked(fi_connect(endpoint, address.data(), &ticket, sizeof ticket),
          "connecting to " + who(peer));
}

void OfiTransport::answer(fi_info* info, std::span<const std::byte> data) {
  Ticket ticket;
  if (data.size() >= sizeof ticket) std::memcpy(&ticket, data.data(), sizeof ticket);
  const bool welcome = data.size() >= sizeof ticket && ticket.from < rank_ &&
                       !links_[ticket.from].endpoint &&
                       stream::same_proof(ticket.proof, theirs_[ticket.from]);
  if (!welcome) {
    static_cast<void>(fi_reject(listener_.get(), info->handle, nullptr, 0));
    return;
  }
  checked(fi_accept(open_endpoint(ticket.from, info), nullptr, 0), "accepting " + who(ticket.from));
}

/// False if there was none.
bool OfiTransport::take_connection_event() {
  std::uint32_t kind = 0;
  ConnectionEvent event;
  const ssize_t bytes = fi_eq_read(events_.get(), &kind, event.bytes.data(), event.bytes.size(), 0);
  if (bytes == -FI_EAGAIN || bytes == -FI_EINTR) return false;
  if (bytes == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    checked(fi_eq_readerr(events_.get(), &error, 0), "reading libfabric's event queue");
    const Rank peer = peer_of(error.fid);
    if (peer >= links_.size()) return true;  // a stranger's
    throw Error("connecting to " + who(peer) + " failed: " + libfabric().strerror(error.err));
  }
  checked(bytes, "reading libfabric's event queue");
  if (kind == FI_CONNREQ) {
    const Info info(event.entry().info);
    answer(info.get(), event.sent_along(static_cast<std::size_t>(bytes)));
    return true;
  }
  const Rank peer = peer_of(event.entry().fid);
  if (peer >= links_.size()) return true;
  if (kind == FI_CONNECTED) links_[peer].connected = true;
  if (kind == FI_SHUTDOWN) end(peer, "its connection closed while the group was forming");
  return true;
}

std::string OfiTransport::who(Rank peer) const {
  const std::string& at = links_[peer].at;
  return "member " + std::to_string(peer) + (at.empty() ? "" : " at " + at);
}

std::string OfiTransport::missing() const {
  std::string all;
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (peer != rank_ && !links_[peer].connected) all += (all.empty() ? "" : ", ") + who(peer);
  return all;
}

void OfiTransport::connect(Rank rank, std::span<const std::vector<std::byte>> endpoint_addresses,
                           std::span<const stream::Proof> ours,
                           std::span<const stream::Proof> theirs, std::uint64_t deadline_ns) {
  rank_ = rank;
  theirs_.assign(theirs.begin(), theirs.end());
  deadline_ns_ = deadline_ns;
  for (Rank peer = 0; peer < links_.size(); ++peer) {
    links_[peer].sent = Marks(ours[peer]);
    links_[peer].received = Marks(theirs[peer]);
    links_[peer].at =
        endpoint_address_text(info_->fabric_attr->prov_name, endpoint_addresses[peer]);
  }
  for (Rank peer = rank_ + 1; peer < links_.size(); ++peer)
    call(peer, endpoint_addresses[peer], ours[peer]);
}

bool OfiTransport::connected() {
  while (!missing().empty()) {
    if (take_connection_event()) continue;
    if (read_clock_ns(CLOCK_MONOTONIC) < deadline_ns_) return false;
    throw Error("the members have met, but there is no connection to " + missing() +
                ": is a firewall in between, or did one of us give an address that others cannot "
                "reach (JoinOptions::address)?");
  }
  listener_.reset();  // nobody else is expected
  theirs_.clear();
  return true;
}

Awaited OfiTransport::awaited() const {
  Awaited news;
  std::array<fid*, 2> queues{&completions_->fid, &events_->fid};
  const bool may_wait =
      fi_trywait(fabric_.get(), queues.data(), static_cast<int>(queues.size())) == FI_SUCCESS;
  const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  news.by(std::min(deadline_ns_, may_wait ? now_ns + kPatienceNs : now_ns));
  for (const int descriptor : descriptors()) news.descriptors.push_back({descriptor, POLLIN, 0});
  return news;
}

}  // namespace dunlin::ofi
