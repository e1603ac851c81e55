#include "daemon/handshake.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "assert.hpp"
#include "fabric/names.hpp"

namespace dunlin::attached {
namespace {

constexpr int kDaemonBacklog = 128;
constexpr std::string_view kSuffix = ".daemon";

Descriptor new_socket() {
  return Descriptor(checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                            "making a socket for a daemon"));
}

sockaddr_un address_in_files(const std::string& path) {
  sockaddr_un address{};
  DUNLIN_ASSERT_ALWAYS(path.size() < sizeof address.sun_path, "check() has refused a longer path");
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  return address;
}

bool is_at(const Descriptor& socket, const std::string& path) noexcept {
  const sockaddr_un address = address_in_files(path);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Listens at a socket in the file system; a daemon that was killed may have left an old one.
Descriptor listen_in_files(const DaemonAddress& daemon, std::uint32_t mode) {
  DUNLIN_ASSERT_ALWAYS((mode & ~0777U) == 0, "a socket has no bits but those of permissions");
  const std::string& path = daemon.socket;
  if (is_at(new_socket(), path))
    throw Error(describe(daemon) + ": another daemon listens there already");
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      throw Error(describe(daemon) + ": there is a file that is no socket; remove it");
    unlink(path.c_str());
  }
  Descriptor listener = new_socket();
  const sockaddr_un address = address_in_files(path);
  checked(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          ("making the socket '" + path + "'").c_str());
  // No client can connect before the socket listens.
  checked(chmod(path.c_str(), mode), "setting the mode of a daemon's socket");
  checked(listen(listener.get(), kDaemonBacklog), "listening at a daemon's socket");
  return listener;
}

shm::Address address_by_name(const DaemonAddress& daemon) {
  return shm::address_of(shm::access_for(daemon.access_group), daemon.group + std::string(kSuffix),
                         0);
}

bool is_text(std::span<const char> text) noexcept { return text.back() == '\0'; }

}  // namespace

std::string describe(const DaemonAddress& daemon) {
  return daemon.socket.empty() ? "daemon of group '" + daemon.group + "'"
                               : "daemon at socket '" + daemon.socket + "'";
}

void check(const DaemonAddress& daemon) {
  if (daemon.socket.empty()) return check_group_name(daemon.group);
  if (daemon.socket.size() >= sizeof(sockaddr_un::sun_path))
    throw Error(describe(daemon) + ": the path must have less than " +
                std::to_string(sizeof(sockaddr_un::sun_path)) + " bytes");
}

Descriptor listen_at(const DaemonAddress& daemon, std::uint32_t mode) {
  if (!daemon.socket.empty()) return listen_in_files(daemon, mode);
  std::optional<Descriptor> listener =
      shm::claim(address_by_name(daemon), shm::Holder::is_examined);
  if (!listener) throw Error(describe(daemon) + ": this host has one already");
  return std::move(*listener);
}

void remove_socket(const DaemonAddress& daemon) noexcept {
  DUNLIN_ASSERT_ALWAYS(!daemon.socket.empty(), "a daemon that is found by name has no file");
  unlink(daemon.socket.c_str());
}

std::optional<Descriptor> connect_to(const DaemonAddress& daemon) {
  if (daemon.socket.empty()) return shm::connect_to(address_by_name(daemon));
  Descriptor socket = new_socket();
  if (is_at(socket, daemon.socket)) return socket;
  if (errno == EACCES)
    throw Error(describe(daemon) + ": this user may not write to that socket (see its mode)");
  return std::nullopt;
}

shm::Counterpart counterpart_of(const Descriptor& socket, const DaemonAddress& daemon) {
  shm::Counterpart there = shm::counterpart_of(socket, shm::access_for(daemon.access_group));
  if (!daemon.socket.empty()) there.admitted = true;
  return there;
}

bool send(const Descriptor& socket, const Packet& packet, int memory) noexcept {
  DUNLIN_ASSERT_ALWAYS(is_text(packet.group) && is_text(packet.space) && is_text(packet.text),
                       "each text ends with a zero, which receive() checks");
  DUNLIN_ASSERT_ALWAYS((packet.type == PacketType::welcome) == (memory >= 0),
                       "DMN-S1: a client that is welcome gets memory, and no other does");
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> space{};
  iovec content{const_cast<Packet*>(&packet), sizeof packet};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (memory >= 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &memory, sizeof memory);
  }
  return sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof packet);
}

std::optional<Welcome> receive(const Descriptor& socket, const DaemonAddress& daemon) {
  Welcome welcome;
  Packet& packet = welcome.packet;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> space{};
  iovec content{&packet, sizeof packet};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t got = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (const cmsghdr* const part = CMSG_FIRSTHDR(&message);
      got > 0 && part != nullptr && part->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(part), sizeof number);
    welcome.memory = Descriptor(number);
  }
  if (got <= 0) {
    welcome.hung_up = true;
    return welcome;
  }
  if (got < 8 || packet.magic != kPacketMagic)
    throw Error(describe(daemon) + ": what listens there is no daemon");
  if (packet.version != kProtocolVersion)
    throw Error(describe(daemon) + " speaks version " + std::to_string(packet.version) +
                " of the protocol, and this program version " + std::to_string(kProtocolVersion) +
                "; build both from one release");
  const bool whole = got == static_cast<ssize_t>(sizeof packet) && is_text(packet.group) &&
                     is_text(packet.space) && is_text(packet.text);
  if (whole && packet.type == PacketType::refuse)
    throw Error(describe(daemon) + " refuses this process: " + packet.text.data());
  const Layout layout{packet.slots, packet.transfer_bytes};
  if (!whole || packet.type != PacketType::welcome || !welcome.memory || !layout.is_sound())
    throw Error(describe(daemon) + " sent what is no welcome");
  return welcome;
}

void ring(const Descriptor& socket) noexcept {
  const std::byte ring{};
  // If the queue is full, it has packets that wake the other side already.
  static_cast<void>(::send(socket.get(), &ring, sizeof ring, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void hang_up(const Descriptor& socket) noexcept { shutdown(socket.get(), SHUT_RDWR); }

bool take_rings(const Descriptor& socket) noexcept {
  // The loop takes at most so many packets; the next call takes what is left.
  for (int i = 0; i < 16; ++i) {
    std::byte ring{};
    const ssize_t got = recv(socket.get(), &ring, sizeof ring, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
  }
  return true;
}

Descriptor make_memory(std::uint64_t bytes) {
  DUNLIN_ASSERT_ALWAYS(bytes > Layout::kRingsAt, "DMN-S1: the memory has control words and rings");
  Descriptor file(checked(memfd_create("dunlin-daemon", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                          "making shared memory for a client"));
  checked(ftruncate(file.get(), static_cast<off_t>(bytes)), "making shared memory for a client");
  // A file that shrinks would kill a process that reads behind its new end.
  checked(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
          "sealing shared memory for a client");
  return file;
}

namespace {

/// How much of the file is mapped: all of it, which has so many bytes.
std::uint64_t whole(const Descriptor& file, std::uint64_t bytes) {
  struct stat info {};
  checked(fstat(file.get(), &info), "looking at a daemon's shared memory");
  if (static_cast<std::uint64_t>(info.st_size) != bytes)
    throw Error("a daemon's shared memory has " + std::to_string(info.st_size) +
                " bytes instead of " + std::to_string(bytes));
  return bytes;
}

}  // namespace

SharedMemory::SharedMemory(const Descriptor& file, std::uint64_t bytes)
    : mapping_(file, 0, whole(file, bytes), PROT_READ | PROT_WRITE) {}

}  // namespace dunlin::attached
