#include "fabric/ofi/ofi_transport.hpp"

#include <algorithm>
#include <cerrno>

namespace dunlin::ofi {
namespace {

constexpr std::size_t kCompletionsAtOnce = 16;
constexpr std::size_t kMaxCompletionsPerRound = 64;
/// Events are only deaths, and looking for them costs as much as a whole round.
constexpr std::uint32_t kRoundsPerLookAtEvents = 32;
constexpr int kRoundsBeforeAnEnd = 8;
/// The limit also counts events of unknown processes, so that no process can hold poll().
constexpr int kMaxEventsPerLook = 64;

}  // namespace

OfiTransport::~OfiTransport() {
  for (Link& link : links_) link.endpoint.reset();
}

std::byte* OfiTransport::lend(Rank to) noexcept {
  Link& link = links_[to];
  return link.ended || link.free.empty() ? nullptr : link.free.back()->bytes + kWordBytes;
}

void OfiTransport::commit(Rank to, std::size_t bytes) noexcept {
  Link& link = links_[to];
  if (link.ended || link.free.empty()) return;
  idle_round_ = false;
  Buffer& buffer = *link.free.back();
  seal(buffer.bytes, bytes, link.sent.current());
  link.sent.advance();
  buffer.used = static_cast<std::uint32_t>(bytes + kEnvelopeBytes);
  if (inject(link, buffer)) return;
  link.free.pop_back();
  ++link.under_way;
  if (!link.waiting.empty()) {
    link.waiting.push_back(&buffer);
    ++waiting_;
    return;
  }
  post_send(buffer);
}

/// OFI-T4. The frame counts as under way until the next round: so frames that are posted one by one
/// are sent in batches.
bool OfiTransport::inject(Link& link, const Buffer& buffer) noexcept {
  if (buffer.used > info_->tx_attr->inject_size || link.under_way > 0) return false;
  if (++link.injected % kInjectedAtMost == 0) return false;
  link.injected_round = round_;
  return fi_inject(link.endpoint.get(), buffer.bytes, buffer.used, 0) == 0;
}

bool OfiTransport::idle(Rank to) const noexcept {
  return links_[to].under_way == 0 && links_[to].injected_round != round_;
}

void* OfiTransport::descriptor_of(const Link& link) const noexcept {
  return link.registration ? fi_mr_desc(link.registration.get()) : nullptr;
}

void OfiTransport::post_send(Buffer& buffer) noexcept {
  Link& link = links_[buffer.peer];
  const ssize_t result = fi_send(link.endpoint.get(), buffer.bytes, buffer.used,
                                 descriptor_of(link), 0, &buffer.context);
  if (result == -FI_EAGAIN) {
    link.waiting.push_front(&buffer);
    ++waiting_;
  } else if (result != 0) {
    fail(buffer.peer, "sending to it failed", static_cast<int>(-result));
  }
}

void OfiTransport::post_waiting(Link& link) noexcept {
  for (std::size_t tries = link.waiting.size(); tries > 0 && !link.ended; --tries) {
    Buffer& buffer = *link.waiting.front();
    link.waiting.pop_front();
    --waiting_;
    post_send(buffer);
    if (!link.waiting.empty() && link.waiting.front() == &buffer) return;
  }
}

void OfiTransport::post_receive(Buffer& buffer) noexcept {
  Link& link = links_[buffer.peer];
  empty(buffer.bytes);
  const ssize_t result = fi_recv(link.endpoint.get(), buffer.bytes, kBufferBytes,
                                 descriptor_of(link), 0, &buffer.context);
  if (result != 0) fail(buffer.peer, "receiving from it failed", static_cast<int>(-result));
}

void OfiTransport::progress(stream::Receiver& receiver) noexcept {
  ++round_;
  if (!closed_.empty()) give_back_closed();
  std::size_t moved = receive(receiver);
  // A sleeper is woken by a frame more often than by an end: so ends are looked for a round later.
  if (rounds_until_events_ > 1)
    --rounds_until_events_;
  else if (moved == 0 || std::exchange(postponed_, true))
    take_events(receiver);
  if (!ended_.empty()) {
    // Frames from before the end follow: no more than the buffers that were posted to the peer.
    for (int i = 0; i < kRoundsBeforeAnEnd && receive(receiver) > 0; ++i) {
    }
    for (const Rank peer : std::exchange(ended_, {}))
      if (!links_[peer].closed) receiver.take_end(peer, links_[peer].why);
    ++moved;
  }
  if (waiting_ > 0)
    for (Link* const link : standing_) post_waiting(*link);
  idle_round_ = moved == 0;
}

/// Takes arrivals; returns how much has come or gone.
std::size_t OfiTransport::receive(stream::Receiver& receiver) {
  std::size_t moved = drain_completions(receiver);
  if (!watches_buffers_) return moved;
  for (Link* const link : standing_)
    for (std::uint32_t i = 0; i < kBuffersEachWay && take_next(*link, receiver); ++i) ++moved;
  return moved;
}

std::size_t OfiTransport::drain_completions(stream::Receiver& receiver) {
  std::size_t total = 0;
  std::array<fi_cq_msg_entry, kCompletionsAtOnce> entries;
  while (total < kMaxCompletionsPerRound) {
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      take_completion_error();
      ++total;
      continue;
    }
    if (count <= 0) break;
    for (ssize_t i = 0; i < count; ++i)
      complete(*static_cast<Buffer*>(entries[static_cast<std::size_t>(i)].op_context), receiver);
    total += static_cast<std::size_t>(count);
  }
  return total;
}

void OfiTransport::complete(Buffer& buffer, stream::Receiver& receiver) {
  Link& link = links_[buffer.peer];
  if (!buffer.receives) {
    --link.under_way;
    link.free.insert(link.free.begin(), &buffer);  // in front, because the last one may be lent
    return;
  }
  if (!take_next(link, receiver) && link.endpoint && link.connected)
    end(buffer.peer, "it sent a frame that is not what it says it is");
}

Arrival OfiTransport::look_at(const Link& link, std::span<const std::byte>& frame) noexcept {
  const Buffer& buffer = link.buffers[kBuffersEachWay + link.next_to_fill];
  return look(buffer.bytes, link.received.current(), frame);
}

bool OfiTransport::holds_frame(const Link* link) noexcept {
  std::span<const std::byte> frame;
  return link->endpoint && link->connected && look_at(*link, frame) != Arrival::none;
}

/// Takes the frame of the buffer that is filled next (OFI-T3); false if the frame is not there yet.
bool OfiTransport::take_next(Link& link, stream::Receiver& receiver) {
  if (!link.endpoint || !link.connected) return false;
  std::span<const std::byte> frame;
  const Arrival arrival = look_at(link, frame);
  if (arrival == Arrival::none) [[likely]]
    return false;
  Buffer& buffer = link.buffers[kBuffersEachWay + link.next_to_fill];
  if (arrival == Arrival::garbage) {
    end(buffer.peer, "it sent a frame that is longer than any");
    return false;
  }
  link.received.advance();
  link.next_to_fill = (link.next_to_fill + 1) % kBuffersEachWay;
  receiver.take_frame(buffer.peer, frame);
  if (!link.ended) post_receive(buffer);
  return true;
}

void OfiTransport::take_completion_error() noexcept {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(completions_.get(), &error, 0) <= 0 || error.op_context == nullptr) return;
  Buffer& buffer = *static_cast<Buffer*>(error.op_context);
  if (!buffer.receives) --links_[buffer.peer].under_way;
  fail(buffer.peer, "its connection broke", error.err);
}

/// Takes events. Without events, a failing send tells of an end.
void OfiTransport::take_events(stream::Receiver& receiver) noexcept {
  rounds_until_events_ = kRoundsPerLookAtEvents;
  postponed_ = false;
  try {
    for (int i = 0; i < kMaxEventsPerLook; ++i) {
      Happening happening;
      if (!next_happening(happening)) return;
      take_later(happening, receiver);
    }
  } catch (const Error&) {
    return;
  }
  rounds_until_events_ = 1;
}

/// Handles an event once the fabric works.
void OfiTransport::take_later(const Happening& happening, stream::Receiver& receiver) {
  const bool is_call = happening.kind == FI_CONNREQ;
  const Rank peer = is_call ? happening.ticket.from : peer_of(happening.endpoint);
  if (is_call && !is_welcome(happening)) return refuse(happening);
  if (peer >= links_.size()) return;
  if (!links_[peer].connected) return take_newcomer(happening, peer, receiver);
  if (happening.error != 0)
    fail(peer, "its connection broke", happening.error);
  else if (happening.kind == FI_SHUTDOWN)
    end(peer, "its connection closed: the process exited or was killed, or has given us up");
}

/// Handles a newcomer's call. A peer that cannot be answered has failed; one that closed before
/// there was a connection may connect again.
void OfiTransport::take_newcomer(const Happening& happening, Rank peer,
                                 stream::Receiver& receiver) noexcept {
  try {
    if (happening.kind == FI_CONNREQ) return answer(happening);
    if (happening.error != 0 || happening.kind != FI_CONNECTED) return not_yet(peer);
    stand(peer);
    if (!links_[peer].ended) receiver.take_link(peer);
  } catch (const Error& error) {
    end(peer, error.what());
  }
}

Rank OfiTransport::peer_of(const fid* endpoint) const noexcept {
  for (Rank peer = 0; peer < links_.size(); ++peer)
    if (links_[peer].endpoint && &links_[peer].endpoint->fid == endpoint) return peer;
  return UINT32_MAX;
}

void OfiTransport::end(Rank peer, std::string why) noexcept {
  Link& link = links_[peer];
  if (link.ended) return;
  link.ended = true;
  link.why = std::move(why);
  ended_.push_back(peer);
}

void OfiTransport::fail(Rank peer, const char* what, int error) noexcept {
  const std::string& at = links_[peer].at;
  end(peer,
      std::string(what) + (at.empty() ? "" : ", at " + at) + ": " + libfabric().strerror(error));
}

/// Closes a link. Its buffers' contexts stay, for completions that are still to come (OFI-T1);
/// their memory stays until the next round, as a frame in it may be what makes us close the link.
void OfiTransport::close(Rank peer) noexcept {
  Link& link = links_[peer];
  link.ended = true;
  link.connected = false;
  link.caller = Caller::nobody;
  waiting_ -= static_cast<std::uint32_t>(link.waiting.size());
  link.waiting.clear();
  if (link.endpoint) static_cast<void>(fi_shutdown(link.endpoint.get(), 0));
  link.endpoint.reset();
  if (!std::exchange(link.closed, true)) closed_.push_back(peer);
}

void OfiTransport::give_back_closed() noexcept {
  std::erase_if(standing_, [](const Link* link) { return link->closed; });
  for (const Rank peer : std::exchange(closed_, {})) {
    Link& link = links_[peer];
    link.registration.reset();
    link.memory.reset();
    link.endpoint_address = {};
    link.at = {};
  }
}

std::array<int, 2> OfiTransport::descriptors() const {
  std::array<int, 2> numbers{-1, -1};
  const std::array<fid*, 2> queues{&completions_->fid, &events_->fid};
  for (std::size_t i = 0; i < queues.size(); ++i)
    checked(fi_control(queues[i], FI_GETWAIT, &numbers[i]), "asking libfabric for a descriptor");
  return numbers;
}

void OfiTransport::watch(int epoll) {
  for (const int descriptor : descriptors())
    if (watch_in(epoll, EPOLL_CTL_ADD, descriptor, EPOLLIN) != 0) checked(-errno, "epoll_ctl");
}

bool OfiTransport::may_wait() noexcept {
  rounds_until_events_ = 1;  // what wakes us may be an event
  // Bytes read from the network before there was a buffer for them wake no sleeper.
  if (!idle_round_ || waiting_ > 0 || !ended_.empty()) return false;
  std::array<fid*, 2> queues{&completions_->fid, &events_->fid};
  if (fi_trywait(fabric_.get(), queues.data(), static_cast<int>(queues.size())) != FI_SUCCESS)
    return false;
  // The provider may have read a frame on the way, and does not report frames without a completion.
  return !watches_buffers_ || std::none_of(standing_.begin(), standing_.end(), holds_frame);
}

}  // namespace dunlin::ofi
