#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/verbs/verbs_transport.hpp"

namespace dunlin::verbs {
namespace {

constexpr std::size_t kMaxCompletionsPerRound = 64;
constexpr std::uint64_t kLookIntervalNs = 1'000'000;
constexpr int kRoundsBeforeAnEnd = 8;
/// The limit also counts events of unknown processes, so that no process can hold poll().
constexpr int kMaxEventsPerLook = 64;
constexpr std::uint64_t kLastWordsNs = 100'000'000;
/// A peer is told of so many received frames with the next frame, and by a message of its own if
/// there is none.
constexpr std::uint32_t kWorthTelling = kFrames / 4;
constexpr std::uint32_t kMustBeTold = kFrames / 2;
constexpr std::size_t kCountBytes = sizeof(std::uint32_t);

/// Whether a count follows a frame (VRB-V1): the length tells, because a frame is whole words.
bool has_count(const ibv_wc& completion) noexcept {
  return completion.byte_len % kWordBytes == kCountBytes;
}

bool is_count_alone(const ibv_wc& completion) noexcept {
  return completion.byte_len == kCountBytes;
}

}  // namespace

/// What was said last leaves before the connection closes; a peer that takes nothing any more does
/// not keep us. Callers that requested results may be gone by now, so none gets any.
VerbsTransport::~VerbsTransport() {
  class Nobody : public stream::Receiver {
   public:
    virtual ~Nobody() = default;

   private:
    void take_frame(Rank, std::span<const std::byte>) override {}
    void take_end(Rank, std::string) override {}
  } nobody;
  for (Link& link : links_) link.queue.each([](Record& record) { record.forget(); });
  const auto unsaid = [](const Link& link) { return link.id && !link.ended && link.under_way > 0; };
  const std::uint64_t until = read_clock_ns(CLOCK_MONOTONIC) + kLastWordsNs;
  while (std::any_of(links_.begin(), links_.end(), unsaid) &&
         read_clock_ns(CLOCK_MONOTONIC) < until)
    drain(nobody);
  for (Link& link : links_) {
    if (!link.id) continue;
    static_cast<void>(rdma_disconnect(link.id.get()));
    link.id.reset();
  }
}

std::byte* VerbsTransport::lend(Rank to) noexcept {
  Link& link = links_[to];
  const bool there_is_room = link.sent - link.received_there < kFrames && link.queue.room() > 0;
  const bool able = link.connected && !link.ended && link.may_speak;
  return able && there_is_room && !link.free.empty() ? link.free.back() : nullptr;
}

void VerbsTransport::commit(Rank to, std::size_t bytes) noexcept {
  Link& link = links_[to];
  if (link.ended || link.free.empty()) return;
  std::byte* const buffer = link.free.back();
  link.free.pop_back();
  ++link.sent;
  ++link.under_way;
  if (link.received - link.told >= kWorthTelling) {
    link.told = link.received;
    std::memcpy(buffer + bytes, &link.told, sizeof link.told);
    bytes += sizeof link.told;
  }
  link.queue.add(IBV_WR_SEND,
                 {reinterpret_cast<std::uintptr_t>(buffer), static_cast<std::uint32_t>(bytes),
                  link.frames->lkey},
                 {.kind = Record::Kind::frame, .to = buffer}, link.tag,
                 bytes <= inline_bytes_ ? IBV_SEND_INLINE : 0);
  ring(to);
}

bool VerbsTransport::idle(Rank to) const noexcept { return links_[to].under_way == 0; }

void VerbsTransport::ring(Rank peer) noexcept {
  if (const int error = links_[peer].queue.ring())
    end(peer, "handing it operations failed: " + error_text(error));
}

std::byte* VerbsTransport::receive_buffer(const Link& link, std::uint32_t buffer) const noexcept {
  return link.pages.get() + (kFrames + buffer) * kBufferBytes;
}

void VerbsTransport::post_receive(Rank peer, std::uint32_t buffer) noexcept {
  Link& link = links_[peer];
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(receive_buffer(link, buffer)), kBufferBytes,
                link.frames->lkey};
  ibv_recv_wr request{};
  request.wr_id = link.tag | kReceiveBit | buffer;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_recv(link.id->qp, &request, &refused))
    end(peer, "receiving from it failed: " + error_text(std::abs(error)));
}

/// Tells the peer how many frames were received (VRB-V1). There are slots for that, so it waits for
/// some only if the device is slow.
void VerbsTransport::report_received(Rank peer) noexcept {
  Link& link = links_[peer];
  if (link.ended || link.received - link.told < kMustBeTold) return;
  if (link.queue.room() == 0) {
    owed_.push_back(peer);
    return;
  }
  const bool is_inline = inline_bytes_ >= sizeof link.told;
  SendQueue::Staged copy;
  if (!is_inline) copy = link.queue.stage(sizeof link.told);
  if (!is_inline && copy.memory == nullptr) {
    owed_.push_back(peer);
    return;
  }
  link.told = link.received;
  const void* said = &link.told;
  if (!is_inline) said = std::memcpy(copy.memory, &link.told, sizeof link.told);
  link.queue.add(IBV_WR_SEND,
                 {reinterpret_cast<std::uintptr_t>(said), sizeof link.told,
                  is_inline ? 0 : link.queue.staging_key()},
                 {.kind = Record::Kind::credit, .staged_bytes = copy.bytes}, link.tag,
                 is_inline ? IBV_SEND_INLINE : 0);
  ring(peer);
}

/// Posts the buffers of handled frames again: not at once, so that an answer to these frames leaves
/// first, and carries the credits.
void VerbsTransport::return_buffers() noexcept {
  for (const Spent& spent : spent_) {
    Link& link = links_[spent.peer];
    if (link.ended || !link.id) continue;
    post_receive(spent.peer, spent.buffer);
    if (++link.received - link.told == kMustBeTold) owed_.push_back(spent.peer);
  }
  spent_.clear();
  const auto owed = static_cast<std::ptrdiff_t>(owed_.size());
  for (std::ptrdiff_t i = 0; i < owed; ++i) report_received(owed_[static_cast<std::size_t>(i)]);
  owed_.erase(owed_.begin(), owed_.begin() + owed);
}

void VerbsTransport::progress(stream::Receiver& receiver) noexcept {
  if (!closed_.empty()) give_back_closed();
  if (!arrived_.empty()) tell_arrived(receiver);
  if (!spent_.empty() || !owed_.empty()) return_buffers();
  drain(receiver);
  if (!ended_.empty()) {
    // Frames from before the end follow: no more than the buffers that were posted to the peer.
    for (int i = 0; i < kRoundsBeforeAnEnd && drain(receiver) > 0; ++i) {
    }
    for (const Rank peer : std::exchange(ended_, {}))
      if (!links_[peer].closed) receiver.take_end(peer, links_[peer].why);
  }
}

std::size_t VerbsTransport::drain(stream::Receiver& receiver) {
  std::size_t total = 0;
  std::array<ibv_wc, 16> found;
  while (total < kMaxCompletionsPerRound) {
    if (!held_.empty()) {
      const ibv_wc first = held_.front();
      held_.pop_front();
      take_completion(first, receiver);
      ++total;
      continue;
    }
    const int count = ibv_poll_cq(completions_.get(), static_cast<int>(found.size()), found.data());
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) take_completion(found[static_cast<std::size_t>(i)], receiver);
    total += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < found.size()) break;
  }
  return total;
}

/// Takes completions. Frames wait for progress(), in their order, but for the counts behind them;
/// there are no more of them than buffers that were posted. All else is taken in its order, first
/// what may_wait() has found.
void VerbsTransport::relieve(stream::Receiver& receiver) noexcept {
  const auto take = [&](const ibv_wc& one) {
    const bool is_frame =
        one.status == IBV_WC_SUCCESS && (one.wr_id & kReceiveBit) != 0 && !is_count_alone(one);
    if (!is_frame) return take_completion(one, receiver);
    const Rank peer = peer_of(one);
    if (peer < links_.size()) static_cast<void>(take_count(peer, one));
    held_.push_back(one);
  };
  for (const ibv_wc& early : std::exchange(held_, {})) take(early);
  std::array<ibv_wc, 16> found;
  const int count = ibv_poll_cq(completions_.get(), static_cast<int>(found.size()), found.data());
  for (int i = 0; i < count; ++i) take(found[static_cast<std::size_t>(i)]);
}

void VerbsTransport::take_completion(const ibv_wc& completion, stream::Receiver& receiver) {
  const Rank peer = peer_of(completion);
  if (peer >= links_.size()) return;
  if (completion.status != IBV_WC_SUCCESS)
    return end(peer, "its connection broke, at " + links_[peer].at + ": " +
                         ibv_wc_status_str(completion.status));
  if ((completion.wr_id & kReceiveBit) != 0) return take_received(peer, completion, receiver);
  links_[peer].queue.retire(static_cast<std::uint32_t>(completion.wr_id),
                            [&](const Record& record) { take_record(peer, record, receiver); });
}

/// The peer of a completion; none if its connection is closed.
Rank VerbsTransport::peer_of(const ibv_wc& completion) const noexcept {
  const auto peer = static_cast<Rank>(completion.wr_id >> kPeerShift);
  const bool open =
      peer < links_.size() && links_[peer].id && (completion.wr_id & kTagMask) == links_[peer].tag;
  return open ? peer : UINT32_MAX;
}

/// Takes a count; false if the count is impossible. A frame that relieve() has put aside is taken
/// twice, and may say less than what came since.
bool VerbsTransport::take_count(Rank peer, const ibv_wc& completion) noexcept {
  Link& link = links_[peer];
  std::uint32_t received = 0;
  if (!has_count(completion)) return true;
  const std::byte* const bytes =
      receive_buffer(link, static_cast<std::uint32_t>(completion.wr_id % kReceiveBit));
  std::memcpy(&received, bytes + completion.byte_len - sizeof received, sizeof received);
  const std::uint32_t more = received - link.received_there;
  if (more > UINT32_MAX / 2) return true;
  if (more > link.sent - link.received_there) {
    end(peer, "it received frames that were not sent");
    return false;
  }
  link.received_there = received;
  return true;
}

void VerbsTransport::take_received(Rank peer, const ibv_wc& completion,
                                   stream::Receiver& receiver) {
  Link& link = links_[peer];
  const auto buffer = static_cast<std::uint32_t>(completion.wr_id % kReceiveBit);
  if (!link.connected && !link.ended) [[unlikely]] {  // a frame can overtake the event
    stand(peer);
    tell_arrived(receiver);
  }
  link.may_speak = true;
  if (!take_count(peer, completion)) return;
  if (is_count_alone(completion)) {
    if (!link.ended) post_receive(peer, buffer);
    return;
  }
  const std::size_t bytes = completion.byte_len - (has_count(completion) ? kCountBytes : 0);
  spent_.push_back({peer, buffer});
  receiver.take_frame(peer, {receive_buffer(link, buffer), bytes});
}

void VerbsTransport::take_record(Rank peer, const Record& record, stream::Receiver& receiver) {
  Link& link = links_[peer];
  if (record.kind == Record::Kind::frame) {
    link.free.insert(link.free.begin(), record.to);  // in front, because the last one may be lent
    --link.under_way;
    return;
  }
  if (record.to != nullptr) give_result(link, record);
  if (record.completion != nullptr) receiver.take_finished(peer, *record.completion, true);
}

/// Looks for events, which are only deaths and newcomers, and cost a system call.
void VerbsTransport::look_around(std::uint64_t now_ns) noexcept {
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookIntervalNs;
  Happening event;
  for (int i = 0; i < kMaxEventsPerLook && next_happening(event); ++i) take_later(event);
}

/// Handles an event once the fabric works. A peer that cannot be answered has failed.
void VerbsTransport::take_later(const Happening& event) noexcept {
  const bool is_call = event.what == RDMA_CM_EVENT_CONNECT_REQUEST;
  const Rank peer = is_call ? event.ticket.from : peer_of(event.id);
  const bool is_newcomer = peer < links_.size() && links_[peer].caller == Caller::they;
  try {
    if (is_call) return answer(event);
    if (is_newcomer) return take_newcomer(peer, event);
  } catch (const Error& error) {
    if (is_newcomer) end(peer, error.what());
    return;
  }
  if (peer >= links_.size()) return;
  if (event.what == RDMA_CM_EVENT_DISCONNECTED)
    end(peer, "its connection closed: the process exited or was killed, or has given us up");
  else if (event.what == RDMA_CM_EVENT_DEVICE_REMOVAL)
    end(peer, "our device " + network_.place.device + " is gone");
}

/// Handles the event of a newcomer that has no connection yet, and may call again.
void VerbsTransport::take_newcomer(Rank peer, const Happening& event) {
  if (event.what == RDMA_CM_EVENT_DISCONNECTED) return not_yet(peer, "it has hung up");
  go_on(peer, event);
}

Rank VerbsTransport::peer_of(const rdma_cm_id* id) const noexcept {
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].id.get() == id) return peer;
  return UINT32_MAX;
}

void VerbsTransport::end(Rank peer, std::string why) noexcept {
  Link& link = links_[peer];
  if (link.ended) return;
  link.ended = true;
  link.why = std::move(why);
  ended_.push_back(peer);
}

/// Closes a link. Its queue pair goes, and with it whatever that may still have done to our memory.
void VerbsTransport::close(Rank peer) noexcept {
  Link& link = links_[peer];
  link.ended = true;
  link.connected = false;
  link.queue.close();
  link.caller = Caller::nobody;
  if (link.id) static_cast<void>(rdma_disconnect(link.id.get()));
  link.id.reset();
  if (!std::exchange(link.closed, true)) closed_.push_back(peer);
}

/// Reports the links of newcomers, except those that have ended meanwhile. It does so later than
/// the event, because the receiver may close a link while it is told.
void VerbsTransport::tell_arrived(stream::Receiver& receiver) {
  for (const Rank peer : std::exchange(arrived_, {}))
    if (!links_[peer].ended) receiver.take_link(peer);
}

/// Gives back the memory of closed links: not at once, as a frame in it may be what makes us close
/// the link.
void VerbsTransport::give_back_closed() noexcept {
  for (const Rank peer : std::exchange(closed_, {})) {
    Link& link = links_[peer];
    link.queue = SendQueue();
    link.staging.reset();
    link.frames.reset();
    link.pages.reset();
    link.free = {};
    link.endpoint_address = {};
    link.at = {};
  }
}

void VerbsTransport::watch(int epoll) {
  for (const int descriptor : {channel_->fd, events_->fd})
    checked(watch_in(epoll, EPOLL_CTL_ADD, descriptor, EPOLLIN), "watching the device");
}

/// Asks to be told of the next completion, and checks whether one came before that.
bool VerbsTransport::may_wait() noexcept {
  next_look_ns_ = 0;  // what wakes us may be an event
  return_buffers();
  if (!arrived_.empty()) return false;
  if (!ended_.empty() || !owed_.empty() || !held_.empty()) return false;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  if (ibv_req_notify_cq(completions_.get(), 0) != 0) return false;
  ibv_wc early{};
  if (ibv_poll_cq(completions_.get(), 1, &early) > 0) held_.push_back(early);
  return held_.empty();
}

}  // namespace dunlin::verbs
