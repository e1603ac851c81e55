#include "fabric/socket_address.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace dunlin {
namespace {

/// How long an IP address of this family is; 0 if the family is not one of IP.
socklen_t ip_address_bytes(sa_family_t family) noexcept {
  if (family == AF_INET) return sizeof(sockaddr_in);
  return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

SocketAddress copy_of(const sockaddr* address) {
  SocketAddress at;
  at.bytes = ip_address_bytes(address->sa_family);
  std::memcpy(&at.address, address, at.bytes);
  return at;
}

/// The bytes of the host's address, without the port.
std::span<const std::byte> host_bytes_of(const SocketAddress& at) noexcept {
  if (at.address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(at.address).sin_addr;
    return std::as_bytes(std::span(&four, 1));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(at.address).sin6_addr;
  return std::as_bytes(std::span(&six, 1));
}

}  // namespace

bool SocketAddress::is_ip() const noexcept { return ip_address_bytes(address.ss_family) != 0; }

static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void SocketAddress::set_port(std::uint16_t number) noexcept {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(number);
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> number{};
  if (getnameinfo(generic(), bytes, number.data(), number.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return number.data();
}

std::string SocketAddress::text() const {
  if (address.ss_family == AF_UNIX) {
    const auto* name =
        reinterpret_cast<const char*>(&address) + offsetof(sockaddr_un, sun_path) + 1;
    return "unix:" + std::string(name, bytes - offsetof(sockaddr_un, sun_path) - 1);
  }
  const std::string number = host();
  if (number.empty()) return "an unknown address";
  return (address.ss_family == AF_INET6 ? "[" + number + "]" : number) + ":" +
         std::to_string(port());
}

SocketAddress unix_address(std::string_view name) noexcept {
  SocketAddress at;
  at.address.ss_family = AF_UNIX;
  auto& path = reinterpret_cast<sockaddr_un&>(at.address).sun_path;
  name = name.substr(0, sizeof path - 1);
  std::ranges::copy(name, path + 1);  // abstract: behind a zero byte
  at.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return at;
}

std::optional<SocketAddress> ip_address_in(std::span<const std::byte> bytes) {
  SocketAddress at;
  if (bytes.size() < sizeof(sa_family_t) || bytes.size() > sizeof at.address) return std::nullopt;
  std::memcpy(&at.address, bytes.data(), bytes.size());
  at.bytes = ip_address_bytes(at.address.ss_family);
  return at.bytes == bytes.size() ? std::optional(at) : std::nullopt;
}

bool same_host(const SocketAddress& one, const SocketAddress& other) noexcept {
  return one.address.ss_family == other.address.ss_family &&
         std::ranges::equal(host_bytes_of(one), host_bytes_of(other));
}

bool same_host(std::span<const std::byte> one, std::span<const std::byte> other) {
  const auto first = ip_address_in(one);
  const auto second = ip_address_in(other);
  return first && second && same_host(*first, *second);
}

std::vector<SocketAddress> find_addresses(const std::string& host, const std::string& port,
                                          int flags, std::string& fault) {
  if (host == "*") {  // the resolver would take it for this host's loopback address
    fault = "'*' names no host";
    return {};
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &first);
  if (error != 0) {
    fault = error == EAI_SYSTEM ? error_text(errno) : gai_strerror(error);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, &freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next)
    if (const SocketAddress at = copy_of(one->ai_addr); at.is_ip()) found.push_back(at);
  return found;
}

std::vector<NetworkInterface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0 || one->ifa_addr == nullptr) continue;
    if (const SocketAddress at = copy_of(one->ifa_addr); at.is_ip())
      found.push_back({one->ifa_name, at, (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

SocketAddress own_address_of(const Descriptor& socket) {
  SocketAddress own;
  own.bytes = sizeof own.address;
  checked(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own.address), &own.bytes),
          "getsockname");
  return own;
}

std::optional<SocketAddress> peer_address_of(const Descriptor& socket) {
  SocketAddress peer;
  peer.bytes = sizeof peer.address;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer.address), &peer.bytes) != 0)
    return std::nullopt;
  return peer;
}

Descriptor new_stream_socket(const SocketAddress& at) noexcept {
  return Descriptor(socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Descriptor& socket, int level, int option, int value) noexcept {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

std::string connection_fault(int socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  return error == 0 ? std::string() : error_text(error);
}

}  // namespace dunlin
