#include "fabric/shm/packet.hpp"

#include <algorithm>
#include <cstring>

#include <sys/resource.h>
#include <sys/socket.h>

namespace dunlin::shm {
namespace {

struct alignas(cmsghdr) DescriptorSpace {
  std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> bytes{};
};

std::vector<Descriptor> take_descriptors(msghdr& message) {
  std::vector<Descriptor> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      taken.emplace_back(number);
    }
  }
  return taken;
}

Received::Kind kind_of(const Packet& packet, ssize_t bytes, int flags, std::size_t descriptors) {
  const auto got = static_cast<std::size_t>(bytes);
  if (got < offsetof(Packet, value) || packet.magic != kPacketMagic) return Received::Kind::garbage;
  if (packet.version != kProtocolVersion) return Received::Kind::other_version;
  if (descriptors > kMaxDescriptors) return Received::Kind::garbage;  // the space was rounded up
  // The control data was cut though there was room: the kernel could give us no more descriptors.
  if ((flags & MSG_CTRUNC) != 0 && descriptors < kMaxDescriptors)
    return Received::Kind::no_descriptors;
  const bool whole = got == sizeof packet && (flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  const bool texts_end =
      packet.group.back() == '\0' && packet.member.back() == '\0' && packet.text.back() == '\0';
  return whole && texts_end ? Received::Kind::packet : Received::Kind::garbage;
}

}  // namespace

Packet refusal(const std::string& text) {
  Packet packet;
  packet.type = PacketType::refuse;
  std::copy_n(text.begin(), std::min(text.size(), packet.text.size() - 1), packet.text.begin());
  return packet;
}

std::string out_of_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return "this process has no file descriptor left (RLIMIT_NOFILE is " +
         std::to_string(limit.rlim_cur) + "): raise the limit (ulimit -n), or close some";
}

Received receive_packet(int socket) {
  Received received;
  DescriptorSpace space;
  iovec content{&received.packet, sizeof received.packet};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes.data();
  message.msg_controllen = space.bytes.size();
  ssize_t got = -1;
  // A peer that hung up with unread packets shows as a reset first; what it sent is behind that.
  for (int tries = 0; got < 0 && tries < 3; ++tries) {
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno != EINTR && errno != ECONNRESET) break;
  }
  if (got < 0) {
    const bool empty = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    received.kind = empty ? Received::Kind::nothing_yet : Received::Kind::closed;
    return received;
  }
  received.descriptors = take_descriptors(message);
  received.kind =
      got == 0 ? Received::Kind::closed
               : kind_of(received.packet, got, message.msg_flags, received.descriptors.size());
  return received;
}

Sent send_packet(int socket, const Packet& packet, int first, int second, int third) noexcept {
  std::array<int, kMaxDescriptors> numbers{first, second, third};
  const auto count = static_cast<std::size_t>(std::ranges::find(numbers, -1) - numbers.begin());
  DescriptorSpace space;
  iovec content{const_cast<Packet*>(&packet), sizeof packet};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = space.bytes.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(part), numbers.data(), count * sizeof(int));
  }
  while (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // ETOOMANYREFS: too many descriptors of this user are in flight; peers will fetch them.
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == ETOOMANYREFS ||
                       errno == ENOBUFS || errno == ENOMEM;
    return later ? Sent::not_yet : Sent::closed;
  }
  return Sent::whole;
}

}  // namespace dunlin::shm
