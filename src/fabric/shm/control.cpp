#include <array>
#include <cerrno>

#include <sys/socket.h>

#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {
namespace {

constexpr std::size_t kMaxTags = 64;
constexpr int kMaxPacketsAtOnce = 64;
constexpr std::size_t kMaxOutgoing = 4 * kMaxRegions;
constexpr std::uint64_t kListenPauseNs = 100'000'000;
constexpr std::size_t kMaxArrivals = 16;
constexpr int kMaxAcceptsAtOnce = 16;  // so that no process can hold poll()

}  // namespace

void ShmBackend::read_control() {
  std::array<std::uint64_t, kMaxTags> tags;
  const std::size_t count = core().sleeper().readable(tags);
  for (const std::uint64_t tag : std::span(tags).first(count)) {
    if (tag < members_) read_packets(static_cast<Rank>(tag));
    if (tag == kListenerTag) accept_arrivals();
    if (tag == kArrivalTag) answer_arrivals();
  }
  if (outgoing_ > 0) flush_control();
}

void ShmBackend::read_packets(Rank from) {
  if (contacts_[from].parting) hear_last_word(from);
  for (int i = 0; i < kMaxPacketsAtOnce && !core().failing(from); ++i) {
    Received received = receive_packet(contacts_[from].link.socket.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    handle_packet(from, received);
  }
}

/// Listens to a peer until it parts, too, or its end of the connection is closed: by its death, or
/// its exit.
void ShmBackend::hear_last_word(Rank from) {
  Descriptor& parting = contacts_[from].parting;
  for (int i = 0; i < kMaxPacketsAtOnce; ++i) {
    const Received received = receive_packet(parting.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    const bool is_packet = received.kind == Received::Kind::packet;
    if (is_packet && received.packet.type == PacketType::leave) core().on_leave(from);
    if (is_packet && received.packet.type == PacketType::part) core().on_part(from);
    if (received.kind == Received::Kind::closed) contacts_[from].hung_up = true;
    if (contacts_[from].hung_up || core().touches_nothing(from)) {
      core().sleeper().forget(parting.get());
      shutdown(parting.get(), SHUT_RDWR);
      parting.close();
      if (core().touches_nothing(from)) contacts_[from].process.close();  // need not be fenced
      return;
    }
  }
}

void ShmBackend::handle_packet(Rank from, Received& received) {
  if (received.kind == Received::Kind::closed) {
    contacts_[from].hung_up = true;
    return core().on_end(
        from,
        "its connection closed: the process exited or was killed, or has given us up for "
        "silent");
  }
  if (received.kind == Received::Kind::no_descriptors)
    return core().fail(from,
                       "the region that it announced could not be taken: " + out_of_descriptors());
  if (received.kind != Received::Kind::packet)
    return core().fail(from, "its control packets are garbage");
  switch (received.packet.type) {
    case PacketType::announce:
      return take_announcement(from, received);
    case PacketType::withdraw:
      if (const auto fault = core().on_withdrawal(from, received.packet.value); fault != nullptr)
        core().fail(from, fault);
      return;
    case PacketType::leave:
      return core().on_leave(from);
    case PacketType::part:
      return core().on_part(from);
    case PacketType::go:
    case PacketType::ready:
      return;  // late packets of the rendezvous
    default:
      return core().fail(from, "it does not keep to the control protocol");
  }
}

/// Sends a packet. Sets the peer's `control_waiting` too, so that the peer need not wait for its
/// next watch.
void ShmBackend::send_control(Rank to, const Packet& packet,
                              std::shared_ptr<const OwnMapping> segment) {
  Contact& contact = contacts_[to];
  if (attention_[to].base == nullptr) return;
  if (contact.outgoing.size() == kMaxOutgoing)
    return core().fail_soon(to, "it does not read its control channel");
  contact.outgoing.push_back({packet, std::move(segment)});
  ++outgoing_;
  flush(to);
}

void ShmBackend::flush(Rank to) {
  Contact& contact = contacts_[to];
  while (!contact.outgoing.empty()) {
    const Outgoing& next = contact.outgoing.front();
    const int file = next.segment ? next.segment->file.get() : -1;
    const Sent sent = send_packet(contact.link.socket.get(), next.packet, file);
    if (sent == Sent::not_yet) break;
    contact.outgoing.pop_front();  // a closed one is noticed by the watch
    --outgoing_;
  }
  if (!contact.outgoing.empty()) core().reckon_duties();
  memory::store(attention_[to].base->control_waiting, 1);
  memory::store(attention_[to].base->pending, 1);
}

void ShmBackend::flush_control() {
  for (Rank peer = 0; peer < members_; ++peer)
    if (!contacts_[peer].outgoing.empty()) flush(peer);
}

// --- members that come later ---------------------------------------------------------------------

void ShmBackend::accept_arrivals() {
  for (int i = 0; i < kMaxAcceptsAtOnce; ++i) {
    Descriptor socket = take_connection(listener_);
    if (!socket) {
      // Without a free descriptor the listener would stay readable, and keep this member from
      // sleeping.
      if (errno == EMFILE || errno == ENFILE) stop_listening();
      break;
    }
    const Counterpart who = counterpart_of(socket, access_);
    if (!who.admitted) continue;
    if (arrivals_.size() == kMaxArrivals) {
      core().sleeper().forget(arrivals_.front().socket.get());
      arrivals_.erase(arrivals_.begin());
    }
    if (!core().sleeper().watch(socket.get(), kArrivalTag)) continue;
    arrivals_.push_back({std::move(socket), who.pid});
  }
  answer_arrivals();
}

void ShmBackend::stop_listening() {
  core().sleeper().forget(listener_.get());
  listen_again_ns_ = core().recent_ns() + kListenPauseNs;
}

/// Listens again, as there may be a descriptor now.
void ShmBackend::listen_again() {
  if (core().recent_ns() < listen_again_ns_) return;
  const bool watched = core().sleeper().watch(listener_.get(), kListenerTag);
  listen_again_ns_ = watched ? UINT64_MAX : core().recent_ns() + kListenPauseNs;
}

/// Answers newcomers. An event handler of a newcomer's arrival may not admit others, so nothing
/// moves here meanwhile.
void ShmBackend::answer_arrivals() {
  std::vector<Arrival> silent;
  for (Arrival& arrival : std::exchange(arrivals_, {}))
    if (!answer(arrival)) silent.push_back(std::move(arrival));
  arrivals_.insert(arrivals_.begin(), std::make_move_iterator(silent.begin()),
                   std::make_move_iterator(silent.end()));
}

/// Answers one newcomer; false if it has said nothing yet.
bool ShmBackend::answer(Arrival& arrival) {
  Received received = receive_packet(arrival.socket.get());
  if (received.kind == Received::Kind::nothing_yet) return false;
  core().sleeper().forget(arrival.socket.get());
  if (received.kind == Received::Kind::packet && received.packet.type == PacketType::enter) {
    take_newcomer(arrival, received);
    return true;
  }
  static_cast<void>(send_packet(
      arrival.socket.get(),
      refusal("group '" + self_.group + "' is already running with all of its " +
              std::to_string(members_) + " members (" + core().name_of(self_.rank) +
              " says so): it takes no late joiner. If others may join the group, come in by "
              "Group::join (dunlin multicast --join); else stop its members first, or choose "
              "another group name")));
  return true;
}

/// Takes a newcomer. One that is not admitted is disconnected: it may be early, and connects again.
void ShmBackend::take_newcomer(Arrival& arrival, Received& received) {
  const Rank rank = received.packet.rank;
  if (rank >= members_ || core().linked(rank) || core().failing(rank)) return;
  Contact& contact = contacts_[rank];
  if (contact.key == 0 || received.packet.value != contact.key) return;
  Link link;
  if (!take_introduction(link, received, self_, rank, std::nullopt).empty()) return;
  OwnMapping inbox;
  try {
    inbox = make_ring(self_, access_);
  } catch (const Error& error) {
    return core().fail(rank, error.what());
  }
  Packet reply = introduction(self_, PacketType::enter);
  reply.value = contact.key;
  if (send_packet(arrival.socket.get(), reply, base_.file.get(), bell_, inbox.file.get()) !=
      Sent::whole)
    return;
  link.socket = std::move(arrival.socket);
  link.pid = arrival.pid;
  link.inbox = std::move(inbox.mapping);
  contact.link = std::move(link);
  ++living_;
  if (!attach(rank)) return core().fail(rank, "its connection cannot be watched");
  core().on_linked(rank);
}

}  // namespace dunlin::shm
