#include "fabric/shm/address.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace dunlin::shm {
namespace {

constexpr int kBacklog = 2 * static_cast<int>(kMaxHostMembers);

struct SocketAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

SocketAddress to_socket_address(const Address& address) {
  SocketAddress result;
  result.address.sun_family = AF_UNIX;
  const std::size_t length = std::min(address.name.size(), sizeof result.address.sun_path - 1);
  std::copy_n(address.name.begin(), length, result.address.sun_path + 1);
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return result;
}

const sockaddr* generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.address);
}

Descriptor new_socket() {
  return Descriptor(checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                            "making a socket for the rendezvous"));
}

bool in_group(const Descriptor& socket, gid_t primary, gid_t group) {
  if (primary == group) return true;
  std::vector<gid_t> groups(64);  // enough for nearly everyone
  auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  const auto ask = [&] {
    return getsockopt(socket.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0;
  };
  if (!ask()) {
    if (errno != ERANGE) return false;
    groups.resize(bytes / sizeof(gid_t));  // as the kernel asks for
    if (!ask()) return false;
  }
  groups.resize(bytes / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

Access access_for(const std::string& access_group) {
  if (access_group.empty()) return {geteuid(), std::nullopt};
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> space(1 << 16);
  getgrnam_r(access_group.c_str(), &entry, space.data(), space.size(), &found);
  if (found == nullptr)
    throw Error("access_group '" + access_group +
                "' is not a Unix group of this host (see /etc/group)");
  return {geteuid(), found->gr_gid};
}

Address address_of(const Access& access, const std::string& group, Rank rank) {
  const std::string who =
      access.group ? "g" + std::to_string(*access.group) : "u" + std::to_string(access.user);
  return {"dunlin:" + who + ":" + group + ":" + std::to_string(rank)};
}

std::optional<Descriptor> claim(const Address& address) {
  Descriptor listener = new_socket();
  const SocketAddress at = to_socket_address(address);
  if (bind(listener.get(), generic(at), at.bytes) != 0) {
    if (errno == EADDRINUSE) return std::nullopt;
    throw Error("claiming the rendezvous address @" + address.name +
                " failed: " + error_text(errno));
  }
  checked(listen(listener.get(), kBacklog), "listening at the rendezvous address");
  return listener;
}

std::optional<Descriptor> connect_to(const Address& address) {
  Descriptor socket = new_socket();
  const SocketAddress at = to_socket_address(address);
  if (connect(socket.get(), generic(at), at.bytes) != 0) return std::nullopt;
  return socket;
}

Descriptor take_connection(const Descriptor& listener) {
  return Descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Counterpart counterpart_of(const Descriptor& socket, const Access& access) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return {0, 0, false};
  const bool admitted =
      access.group ? in_group(socket, who.gid, *access.group) : who.uid == access.user;
  return {who.pid, who.uid, admitted};
}

}  // namespace dunlin::shm
