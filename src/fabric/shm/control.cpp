#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/epoll.h>

#include "fabric/shm/shm_fabric.hpp"
#include "fabric/shm/tags.hpp"

namespace dunlin::shm {
namespace {

constexpr int kMaxEvents = 64;
constexpr int kMaxPacketsAtOnce = 64;
constexpr std::size_t kMaxOutgoing = 4 * kMaxRegions;
constexpr std::size_t kMaxArrivals = 16;
constexpr int kMaxAcceptsAtOnce = 16;  // so that nobody can hold poll()

}  // namespace

bool ShmFabric::listen_for(int descriptor, std::uint64_t tag) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = tag;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

/// Before closing it: were it open in a forked child, too, it would else stay, and be readable for
/// ever.
void ShmFabric::forget(const Descriptor& descriptor) noexcept {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor.get(), nullptr);
}

void ShmFabric::read_control() {
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kMaxEvents, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kBellTag) bell_rings_ = true;
    if (tag == kAlarmTag) alarm_went_off();
    if (tag == kListenerTag) accept_arrivals();
    if (tag == kArrivalTag) refuse_arrivals();
    if (tag < size()) read_packets(static_cast<Rank>(tag));
  }
  if (outgoing_ > 0) flush_control();
  for (auto& [peer, how] : std::exchange(doomed_, {})) fail(peer, how);
  handled_ += tell_expelled();
  if (must_match_) match_offers();
  if (prepared_) set_alarm();  // it may have gone off in this last poll
}

void ShmFabric::read_packets(Rank from) {
  for (int i = 0; i < kMaxPacketsAtOnce && !failed(from); ++i) {
    Received received = receive_packet(contacts_[from].link.socket.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    handle_packet(from, received);
  }
}

void ShmFabric::handle_packet(Rank from, Received& received) {
  if (received.kind == Received::Kind::closed)
    return fail(from, contacts_[from].says_goodbye
                          ? "it has left the group"
                          : "its connection closed: the process exited or was killed, or has given "
                            "us up for silent");
  if (received.kind == Received::Kind::no_descriptors)
    return fail(from, "the region that it announced could not be taken: " + out_of_descriptors());
  if (received.kind != Received::Kind::packet) return fail(from, "its control packets are garbage");
  switch (received.packet.type) {
    case PacketType::announce:
      try {
        return take_announcement(from, received);
      } catch (const Error& error) {
        return fail(from, std::string("it announced a region that is no use: ") + error.what());
      }
    case PacketType::withdraw:
      return take_withdrawal(from, received.packet.value);
    case PacketType::leave:
      contacts_[from].says_goodbye = true;
      return;
    case PacketType::go:
    case PacketType::ready:
      return;  // late words of the rendezvous
    default:
      return fail(from, "it does not keep to the control protocol");
  }
}

/// Sets the peer's `control_waiting` too, so that it need not wait for its next watch.
void ShmFabric::send_control(Rank to, const Packet& packet,
                             std::shared_ptr<const OwnSegment> segment) {
  Contact& contact = contacts_[to];
  if (to == rank_ || doors_[to].base == nullptr) return;
  if (contact.outgoing.size() == kMaxOutgoing)
    return fail_soon(to, "it does not read its control channel");
  contact.outgoing.push_back({packet, std::move(segment)});
  ++outgoing_;
  flush(to);
}

void ShmFabric::flush(Rank to) {
  Contact& contact = contacts_[to];
  while (!contact.outgoing.empty()) {
    const Outgoing& next = contact.outgoing.front();
    const int file = next.segment ? next.segment->file.get() : -1;
    const Sent sent = send_packet(contact.link.socket.get(), next.packet, file);
    if (sent == Sent::not_yet) break;
    contact.outgoing.pop_front();  // if closed, the watch will notice
    --outgoing_;
  }
  if (prepared_ && !contact.outgoing.empty()) set_alarm();
  memory::store(doors_[to].base->control_waiting, 1);
  memory::store(doors_[to].base->pending, 1);
}

void ShmFabric::flush_control() {
  for (Rank peer = 0; peer < size(); ++peer)
    if (!contacts_[peer].outgoing.empty()) flush(peer);
}

// --- those who come too late ---------------------------------------------------------------------

void ShmFabric::accept_arrivals() {
  for (int i = 0; i < kMaxAcceptsAtOnce; ++i) {
    Descriptor socket = take_connection(listener_);
    if (!socket) {
      // Without a free descriptor the listener would stay readable and keep us from sleeping.
      if (errno == EMFILE || errno == ENFILE) forget(listener_);
      break;
    }
    if (!counterpart_of(socket, access_).admitted) continue;
    if (arrivals_.size() == kMaxArrivals) {
      forget(arrivals_.front());
      arrivals_.erase(arrivals_.begin());
    }
    if (!listen_for(socket.get(), kArrivalTag)) continue;
    arrivals_.push_back(std::move(socket));
  }
  refuse_arrivals();
}

void ShmFabric::refuse_arrivals() {
  const Packet answer =
      refusal("group '" + group_ + "' is already running with all of its " +
              std::to_string(size()) + " members (" + who(rank_) +
              " says so): it takes no late joiner. If others may join the group, come in by "
              "Group::join (dunlin multicast --join); else stop its members first, or choose "
              "another group name");
  std::erase_if(arrivals_, [&](const Descriptor& socket) {
    if (receive_packet(socket.get()).kind == Received::Kind::nothing_yet) return false;
    static_cast<void>(send_packet(socket.get(), answer));
    forget(socket);
    return true;
  });
}

}  // namespace dunlin::shm
