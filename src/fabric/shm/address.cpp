#include "fabric/shm/address.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <grp.h>

#include "fabric/socket_address.hpp"

namespace dunlin::shm {
namespace {

constexpr int kBacklog = 2 * static_cast<int>(kMaxHostMembers);

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
    groups.resize(bytes / sizeof(gid_t));  // as many as the kernel asks for
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
  return {"dunlin:" + who + ":" + group + ":" + std::to_string(rank), access};
}

std::string Address::name_number(unsigned number) const {
  if (number == 0) return name;
  return "dunlin-" + std::to_string(number) + name.substr(std::string_view("dunlin").size());
}

namespace {

enum class Found : std::uint8_t { nobody, stranger, member };

/// Connects to a name, which uses `socket` up. A full queue does not show its owner.
Found look_at(const std::string& name, const Access& access, const Descriptor& socket) {
  const SocketAddress at = unix_address(name);
  if (connect(socket.get(), at.generic(), at.bytes) != 0) return Found::nobody;
  return counterpart_of(socket, access).admitted ? Found::member : Found::stranger;
}

/// Whether a member holds a name of the address other than `mine`.
bool is_held_elsewhere(const Address& address, unsigned mine) {
  Descriptor socket = new_socket();
  for (unsigned number = 0; number <= kSpareNames; ++number) {
    if (number == mine) continue;
    const Found found = look_at(address.name_number(number), address.access, socket);
    if (found == Found::member) return true;
    if (found == Found::stranger) socket = new_socket();
  }
  return false;
}

}  // namespace

/// Each claimer listens before it looks: so of two that claim two names of one address at the same
/// time, at least one sees the other.
std::optional<Descriptor> claim(const Address& address, Holder holder) {
  for (unsigned number = 0; number <= kSpareNames; ++number) {
    const std::string name = address.name_number(number);
    Descriptor listener = new_socket();
    const SocketAddress at = unix_address(name);
    if (bind(listener.get(), at.generic(), at.bytes) == 0) {
      checked(listen(listener.get(), kBacklog), "listening at the rendezvous address");
      if (is_held_elsewhere(address, number)) return std::nullopt;
      return listener;
    }
    if (errno != EADDRINUSE)
      throw Error("claiming the rendezvous address @" + name + " failed: " + error_text(errno));
    if (holder == Holder::is_trusted ||
        look_at(name, address.access, new_socket()) == Found::member)
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Descriptor> connect_to(const Address& address) {
  Descriptor stranger, socket = new_socket();
  for (unsigned number = 0; number <= kSpareNames; ++number) {
    const SocketAddress at = unix_address(address.name_number(number));
    if (connect(socket.get(), at.generic(), at.bytes) != 0) continue;
    if (counterpart_of(socket, address.access).admitted) return socket;
    stranger = std::exchange(socket, new_socket());
  }
  return stranger ? std::optional(std::move(stranger)) : std::nullopt;
}

/// The kernel lists all names; any user can bind one, so the holder is asked for.
bool is_held_from(const Access& access, const std::string& group, Rank first) {
  const std::string own = address_of(access, group, 0).name;
  const std::string_view behind_dunlin =
      std::string_view(own).substr(std::string_view("dunlin").size(), own.size() - 1 - 6);
  std::ifstream names("/proc/net/unix");
  for (std::string line; std::getline(names, line);) {
    const std::size_t at = line.find("@dunlin");
    const std::size_t mark = at == std::string::npos ? at : line.find(behind_dunlin, at);
    if (mark == std::string::npos) continue;
    const std::string digits = line.substr(mark + behind_dunlin.size());
    Rank rank = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || rank < first)
      continue;
    const std::optional<Descriptor> holder = connect_to(address_of(access, group, rank));
    if (holder && counterpart_of(*holder, access).admitted) return true;
  }
  return false;
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
