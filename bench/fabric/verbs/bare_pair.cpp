#include "bench/fabric/verbs/bare_pair.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>

#include <dunlin/fabric/memory.hpp>

#include "bench/harness/clock.hpp"

namespace dunlin::bench {
namespace {

using verbs::done;
using verbs::made;

constexpr int kResolveMs = 5'000;
constexpr std::uint32_t kMostSlots = 512;
constexpr std::uint32_t kReceives = 16;  // one signal is under way at a time
constexpr std::uint32_t kInlineBytes = 64;
constexpr int kCallers = 16;
constexpr double kAgainNs = 50e6;

struct AddressInfo {
  explicit AddressInfo(const std::string& address, int port) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
      throw Error("bench: '" + address + "' is no address of an RDMA device");
  }
  AddressInfo(const AddressInfo&) = delete;
  AddressInfo& operator=(const AddressInfo&) = delete;
  ~AddressInfo() { freeaddrinfo(found); }
  addrinfo* found = nullptr;
};

/// The next event must be this one; what was sent along is copied.
rdma_cm_id* expect(rdma_event_channel* events, rdma_cm_event_type wanted, void* sent_along,
                   std::size_t bytes) {
  rdma_cm_event* event = nullptr;
  done(rdma_get_cm_event(events, &event), "waiting for an event");
  const rdma_cm_event_type what = event->event;
  rdma_cm_id* const id = event->id;
  if (what == wanted && bytes > 0 && event->param.conn.private_data_len >= bytes)
    std::memcpy(sent_along, event->param.conn.private_data, bytes);
  rdma_ack_cm_event(event);
  if (what != wanted) throw Error(std::string("unexpected: ") + rdma_event_str(what));
  return id;
}

}  // namespace

/// What the peer may reach, and what we send from.
struct BarePair::Buffer {
  alignas(64) std::uint64_t arriving = 0;
  alignas(64) std::uint64_t leaving = 0;
  alignas(64) std::uint64_t counter = 0;
  alignas(64) std::uint64_t former = 0;
  alignas(4096) std::array<std::byte, kRoomBytes> room{};
  std::array<std::byte, kRoomBytes> source{};
};

void BarePair::FreeBuffer::operator()(Buffer* buffer) const noexcept { delete buffer; }

void BarePair::prepare(verbs::Id id) {
  id_ = std::move(id);
  const bool is_iwarp = id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
  sends_ = is_iwarp || signals_ == Signals::wake;
  ibv_device_attr limits{};
  done(ibv_query_device(id_->verbs, &limits), "asking the device");
  has_atomics_ = !is_iwarp && limits.atomic_cap != IBV_ATOMIC_NONE;
  reads_at_once_ = static_cast<std::uint8_t>(std::clamp(limits.max_qp_rd_atom, 1, 8));
  slots_ = std::min(kMostSlots, static_cast<std::uint32_t>(limits.max_qp_wr));
  buffer_.reset(new Buffer);
  domain_.reset(made(ibv_alloc_pd(id_->verbs), "making a protection domain"));
  const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     (has_atomics_ ? IBV_ACCESS_REMOTE_ATOMIC : 0);
  registration_.reset(
      made(ibv_reg_mr(domain_.get(), buffer_.get(), sizeof *buffer_, rights), "registering"));
  ours_ = {reinterpret_cast<std::uintptr_t>(buffer_.get()), registration_->rkey};
  prepare_queues();
}

void BarePair::prepare_queues() {
  if (signals_ == Signals::wake)
    bell_.reset(made(ibv_create_comp_channel(id_->verbs), "a completion channel"));
  sent_.reset(made(ibv_create_cq(id_->verbs, static_cast<int>(slots_), nullptr, nullptr, 0),
                   "making a completion queue"));
  received_.reset(made(ibv_create_cq(id_->verbs, kReceives, nullptr, bell_.get(), 0),
                       "making a completion queue"));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sent_.get();
  wanted.recv_cq = received_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {slots_, kReceives, 1, 1, kInlineBytes};
  done(rdma_create_qp(id_.get(), domain_.get(), &wanted), "making a queue pair");
  for (std::uint32_t i = 0; sends_ && i < kReceives; ++i) post_receive();
  requests_.reserve(slots_);
  pieces_.reserve(slots_);
}

rdma_conn_param BarePair::parameters() {
  rdma_conn_param ours{};
  ours.private_data = &ours_;
  ours.private_data_len = sizeof ours_;
  ours.responder_resources = reads_at_once_;
  ours.initiator_depth = reads_at_once_;
  ours.retry_count = 7;
  ours.rnr_retry_count = 7;
  return ours;
}

BarePair::BarePair(const std::string& address, int port, Signals signals) : signals_(signals) {
  events_.reset(made(rdma_create_event_channel(), "listening to events"));
  verbs::Id id = verbs::new_id(events_.get());
  const AddressInfo to(address, port);
  done(rdma_resolve_addr(id.get(), nullptr, to.found->ai_addr, kResolveMs), "looking for the way");
  expect(events_.get(), RDMA_CM_EVENT_ADDR_RESOLVED, nullptr, 0);
  done(rdma_resolve_route(id.get(), kResolveMs), "looking for the route");
  expect(events_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED, nullptr, 0);
  prepare(std::move(id));
  rdma_conn_param ours = parameters();
  done(rdma_connect(id_.get(), &ours), "connecting");
  expect(events_.get(), RDMA_CM_EVENT_ESTABLISHED, &theirs_, sizeof theirs_);
  meet_as_caller();
}

/// On iWARP the caller must speak first, and soft-iWARP may overlook what comes while the other end
/// is still accepting, until more comes.
void BarePair::meet_as_caller() {
  signal();
  for (double again_ns = now_ns() + kAgainNs; !has_signalled();) {
    if (now_ns() < again_ns) continue;
    write(sizeof(std::uint64_t), 1);
    again_ns = now_ns() + kAgainNs;
  }
}

/// The next request, from a place of our buffer to a place of the peer's.
ibv_send_wr& BarePair::next(ibv_wr_opcode opcode, std::size_t from, std::size_t to,
                            std::size_t bytes) {
  while (in_use_ + requests_.size() >= slots_) {
    ring();
    reap_sent();
  }
  pieces_.push_back({ours_.address + from, static_cast<std::uint32_t>(bytes), registration_->lkey});
  ibv_send_wr& request = requests_.emplace_back();
  request.opcode = opcode;
  request.sg_list = &pieces_.back();
  request.num_sge = 1;
  request.wr.rdma.remote_addr = theirs_.address + to;
  request.wr.rdma.rkey = theirs_.key;
  if (bytes <= kInlineBytes && opcode != IBV_WR_RDMA_READ) request.send_flags = IBV_SEND_INLINE;
  if (++unsignalled_ >= slots_ / 4) {
    request.wr_id = unsignalled_;
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_ = 0;
  }
  return request;
}

/// Posts what was added, with one doorbell.
void BarePair::ring() {
  if (requests_.empty()) return;
  for (std::size_t i = 1; i < requests_.size(); ++i) requests_[i - 1].next = &requests_[i];
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(id_->qp, requests_.data(), &refused) != 0) throw Error("sending failed");
  in_use_ += static_cast<std::uint32_t>(requests_.size());
  requests_.clear();
  pieces_.clear();
}

/// Posts what was added, and waits until the last of it has completed.
void BarePair::finish() {
  ibv_send_wr& last = requests_.back();
  if ((last.send_flags & IBV_SEND_SIGNALED) == 0) {
    last.wr_id = unsignalled_;
    last.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_ = 0;
  }
  ring();
  while (in_use_ > 0) reap_sent();
}

void BarePair::reap_sent() {
  ibv_wc completion{};
  const int count = ibv_poll_cq(sent_.get(), 1, &completion);
  if (count < 0 || (count > 0 && completion.status != IBV_WC_SUCCESS))
    throw Error("bench: a bare connection broke");
  if (count > 0) in_use_ -= static_cast<std::uint32_t>(completion.wr_id);
}

void BarePair::add_signal() {
  buffer_->leaving = ++signals_sent_;
  next(sends_ ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, offsetof(Buffer, leaving),
       offsetof(Buffer, arriving), sizeof(std::uint64_t));
}

void BarePair::signal(std::size_t bytes) {
  if (bytes > 0) next(IBV_WR_RDMA_WRITE, offsetof(Buffer, source), offsetof(Buffer, room), bytes);
  add_signal();
  ring();
}

void BarePair::write(std::size_t bytes, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    next(IBV_WR_RDMA_WRITE, offsetof(Buffer, source), offsetof(Buffer, room), bytes);
  ring();
}

void BarePair::read(std::size_t bytes) {
  next(IBV_WR_RDMA_READ, offsetof(Buffer, source), offsetof(Buffer, room), bytes);
  finish();
}

void BarePair::add() {
  ibv_send_wr& request = next(IBV_WR_ATOMIC_FETCH_AND_ADD, offsetof(Buffer, former), 0, 8);
  request.send_flags &= ~static_cast<unsigned>(IBV_SEND_INLINE);
  request.wr.atomic.remote_addr = theirs_.address + offsetof(Buffer, counter);
  request.wr.atomic.compare_add = 1;
  request.wr.atomic.swap = 0;
  request.wr.atomic.rkey = theirs_.key;
  finish();
}

void BarePair::post_receive() {
  ibv_sge piece{ours_.address + offsetof(Buffer, arriving), sizeof(std::uint64_t),
                registration_->lkey};
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_recv(id_->qp, &request, &refused) != 0) throw Error("receiving failed");
}

void BarePair::reap_received() {
  ibv_wc completion{};
  int count = 0;
  bool armed = false;
  while ((count = ibv_poll_cq(received_.get(), 1, &completion)) == 0) {
    if (!bell_) continue;
    if (!armed) {  // and look once more: it may have come before
      done(ibv_req_notify_cq(received_.get(), 0), "asking for a completion's bell");
      armed = true;
      continue;
    }
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    done(ibv_get_cq_event(bell_.get(), &queue, &context), "sleeping");
    ibv_ack_cq_events(queue, 1);
    armed = false;
  }
  if (count < 0 || completion.status != IBV_WC_SUCCESS)
    throw Error("bench: a bare connection broke");
}

/// Takes a signal that is there.
bool BarePair::has_signalled() {
  if (!sends_) {
    if (memory::load(buffer_->arriving) <= signals_seen_) return false;
    ++signals_seen_;
    return true;
  }
  ibv_wc completion{};
  const int count = ibv_poll_cq(received_.get(), 1, &completion);
  if (count == 0) return false;
  if (count < 0 || completion.status != IBV_WC_SUCCESS)
    throw Error("bench: a bare connection broke");
  post_receive();
  ++signals_seen_;
  return true;
}

void BarePair::await() {
  ++signals_seen_;
  if (sends_) {
    reap_received();
    post_receive();
  }
  while (memory::load(buffer_->arriving) < signals_seen_) {
  }
}

BareListener::BareListener(const std::string& address)
    : events_(made(rdma_create_event_channel(), "listening to events")),
      id_(verbs::new_id(events_.get())) {
  const AddressInfo own(address, 0);
  done(rdma_bind_addr(id_.get(), own.found->ai_addr), "binding");
  done(rdma_listen(id_.get(), kCallers), "listening");
}

int BareListener::port() const { return ntohs(rdma_get_src_port(id_.get())); }

BarePair BareListener::accept(Signals signals) {
  BarePair pair(signals);
  rdma_cm_id* const id =
      expect(events_.get(), RDMA_CM_EVENT_CONNECT_REQUEST, &pair.theirs_, sizeof pair.theirs_);
  pair.prepare(verbs::Id(id));
  rdma_conn_param ours = pair.parameters();
  done(rdma_accept(id, &ours), "accepting");
  expect(events_.get(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
  pair.await();
  pair.signal();
  return pair;
}

}  // namespace dunlin::bench
