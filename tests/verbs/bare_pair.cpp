#include "verbs/bare_pair.hpp"

#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::test {
namespace {

using verbs::done;
using verbs::made;

constexpr int kResolveMs = 5'000;
constexpr std::uint32_t kSlots = 64;

sockaddr_in socket_address(const std::string& address, int port) {
  sockaddr_in made_address{};
  made_address.sin_family = AF_INET;
  made_address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &made_address.sin_addr) != 1)
    throw Error("no address: " + address);
  return made_address;
}

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

void BarePair::prepare(verbs::Id id) {
  id_ = std::move(id);
  sends_ = id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
  words_ = std::make_unique<Words>();
  domain_.reset(made(ibv_alloc_pd(id_->verbs), "making a protection domain"));
  registration_.reset(made(ibv_reg_mr(domain_.get(), words_.get(), sizeof *words_,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                           "registering"));
  ours_ = {reinterpret_cast<std::uintptr_t>(&words_->arriving), registration_->rkey};
  sent_.reset(made(ibv_create_cq(id_->verbs, 2 * kSlots, nullptr, nullptr, 0), "a queue"));
  received_.reset(made(ibv_create_cq(id_->verbs, 2 * kSlots, nullptr, nullptr, 0), "a queue"));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sent_.get();
  wanted.recv_cq = received_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {kSlots, kSlots, 1, 1, 8};
  done(rdma_create_qp(id_.get(), domain_.get(), &wanted), "making a queue pair");
  for (std::uint32_t i = 0; sends_ && i < kSlots / 2; ++i) post_receive();
}

rdma_conn_param BarePair::parameters() {
  rdma_conn_param ours{};
  ours.private_data = &ours_;
  ours.private_data_len = sizeof ours_;
  ours.retry_count = 7;
  ours.rnr_retry_count = 7;
  return ours;
}

BarePair::BarePair(const std::string& address, int port) {
  events_.reset(made(rdma_create_event_channel(), "listening to events"));
  verbs::Id id = verbs::new_id(events_.get());
  sockaddr_in from = socket_address(address, 0);
  sockaddr_in to = socket_address(address, port);
  done(rdma_resolve_addr(id.get(), reinterpret_cast<sockaddr*>(&from),
                         reinterpret_cast<sockaddr*>(&to), kResolveMs),
       "looking for the way");
  expect(events_.get(), RDMA_CM_EVENT_ADDR_RESOLVED, nullptr, 0);
  done(rdma_resolve_route(id.get(), kResolveMs), "looking for the route");
  expect(events_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED, nullptr, 0);
  prepare(std::move(id));
  rdma_conn_param ours = parameters();
  done(rdma_connect(id_.get(), &ours), "connecting");
  expect(events_.get(), RDMA_CM_EVENT_ESTABLISHED, &theirs_, sizeof theirs_);
}

void BarePair::post_receive() {
  ibv_sge piece{ours_.address, sizeof(std::uint64_t), registration_->lkey};
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_recv(id_->qp, &request, &refused) != 0) throw Error("receiving failed");
}

void BarePair::reap(ibv_cq* queue) {
  ibv_wc completion{};
  int count = 0;
  while (count == 0) count = ibv_poll_cq(queue, 1, &completion);
  if (count < 0 || completion.status != IBV_WC_SUCCESS) throw Error("the connection broke");
}

void BarePair::send(std::uint64_t turn) {
  words_->leaving = turn;
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(&words_->leaving), sizeof turn, 0};
  ibv_send_wr request{};
  request.opcode = sends_ ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = theirs_.address;
  request.wr.rdma.rkey = theirs_.key;
  const bool signalled = ++unsignalled_ == kSlots / 2;
  if (signalled) request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(id_->qp, &request, &refused) != 0) throw Error("sending failed");
  if (!signalled) return;
  unsignalled_ = 0;
  reap(sent_.get());
}

void BarePair::await(std::uint64_t turn) {
  if (sends_) {
    reap(received_.get());
    post_receive();
  }
  while (memory::load(words_->arriving) != turn) {
  }
}

BareListener::BareListener(const std::string& address)
    : events_(made(rdma_create_event_channel(), "listening to events")),
      id_(verbs::new_id(events_.get())) {
  sockaddr_in own = socket_address(address, 0);
  done(rdma_bind_addr(id_.get(), reinterpret_cast<sockaddr*>(&own)), "binding");
  done(rdma_listen(id_.get(), 1), "listening");
}

int BareListener::port() const { return ntohs(rdma_get_src_port(id_.get())); }

BarePair BareListener::accept() {
  BarePair pair;
  rdma_cm_id* const id =
      expect(events_.get(), RDMA_CM_EVENT_CONNECT_REQUEST, &pair.theirs_, sizeof pair.theirs_);
  pair.prepare(verbs::Id(id));
  rdma_conn_param ours = pair.parameters();
  done(rdma_accept(id, &ours), "accepting");
  expect(events_.get(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
  return pair;
}

}  // namespace dunlin::test
