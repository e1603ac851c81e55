#include "fabric/rendezvous/address.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

namespace dunlin::rendezvous {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxUnixNameBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr int kBacklog = 1024;
constexpr const char* kEveryMachine = "every machine has it, so each would be the host";

[[noreturn]] void throw_impossible(const std::string& text, const std::string& why) {
  throw Error("the rendezvous address '" + text + "' is not possible: " + why +
              ". Give host:port, [v6]:port or unix:NAME");
}

void check_port(const std::string& text, const std::string& port) {
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || std::stoul(port) < 1 || std::stoul(port) > 65535)
    throw_impossible(text, "its port '" + port + "' is not a number from 1 to 65535");
}

/// Whether this is a wildcard address, which all machines have, and none in particular.
bool is_wildcard(const SocketAddress& at) {
  if (at.address.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(at.address).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(at.address).sin6_addr);
}

/// All addresses of this machine: those of IPv6 and IPv4, or only those of IPv4 where there is no
/// IPv6.
std::array<SocketAddress, 2> everywhere(std::uint16_t port) {
  std::array<SocketAddress, 2> result;
  result[0].address.ss_family = AF_INET6;
  result[0].bytes = sizeof(sockaddr_in6);
  result[1].address.ss_family = AF_INET;
  result[1].bytes = sizeof(sockaddr_in);
  for (SocketAddress& all : result) all.set_port(port);
  return result;
}

/// Sets options by which the kernel notices a machine that is gone, though neither side sends
/// anything for a long time.
void tune(const Descriptor& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);  // while bytes are unacknowledged
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

bool means_loopback(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost") || host.starts_with("localhost.") ||
      host == "ip6-localhost" || host == "ip6-loopback")
    return true;
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1)
    return (ntohl(four.s_addr) >> 24) == IN_LOOPBACKNET;
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Address parse_address(const std::string& text) {
  Address address{text};
  if (text.starts_with(kUnix)) {
    address.unix_name = text.substr(kUnix.size());
    if (address.unix_name.empty() || address.unix_name.size() > kMaxUnixNameBytes)
      throw_impossible(text, "a name has 1 to " + std::to_string(kMaxUnixNameBytes) + " bytes");
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) throw_impossible(text, "it has no port");
  address.host = text.substr(0, colon);
  address.port = text.substr(colon + 1);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  else if (address.host.find_first_of(":[]") != std::string::npos)
    throw_impossible(text, "an IPv6 address stands in brackets");
  if (address.host.empty()) throw_impossible(text, "it has no host");
  if (address.host == "0.0.0.0" || address.host == "::") throw_impossible(text, kEveryMachine);
  check_port(text, address.port);
  return address;
}

std::string address_text(std::span<const std::byte> socket_address) {
  const auto at = ip_address_in(socket_address);
  return at ? at->text() : std::string();
}

std::vector<SocketAddress> resolve(const Address& address, std::string& fault) {
  if (address.is_unix()) return {unix_address(address.unix_name)};
  std::string reason;
  std::vector<SocketAddress> targets = find_addresses(address.host, address.port, 0, reason);
  if (targets.empty())
    fault = "the name '" + address.host + "' could not be resolved (" + reason + ")";
  for (SocketAddress& target : targets) {
    if (is_wildcard(target)) throw_impossible(address.text, kEveryMachine);
    target.own_name = means_loopback(target.host()) && !means_loopback(address.host);
  }
  return targets;
}

namespace {

/// Tries to listen at one target; returns whether that decides: we listen, or another process does.
bool claim_one(const SocketAddress& target, Claim& result) {
  Descriptor listener = new_stream_socket(target);
  // Connections of an earlier rendezvous may linger at the address.
  if (listener) set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  if (listener && target.address.ss_family == AF_INET6)
    set_option(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (listener && bind(listener.get(), target.generic(), target.bytes) == 0 &&
      listen(listener.get(), kBacklog) == 0) {
    result = Claim{std::move(listener), target, {}};
    return true;
  }
  if (errno == EADDRINUSE) {  // all targets are taken, even if no process listens there yet
    result.fault.clear();
    return true;
  }
  result.fault = target.text() + " cannot be bound here (" + error_text(errno) + ")";
  return false;
}

}  // namespace

Claim claim(const std::vector<SocketAddress>& targets) {
  Claim result;
  for (const SocketAddress& target : targets) {
    if (!target.own_name && claim_one(target, result)) break;
    if (!target.own_name) continue;
    const auto all = everywhere(target.port());
    if (claim_one(all[0], result) || claim_one(all[1], result)) break;
  }
  return result;
}

Descriptor begin_to_connect(const SocketAddress& target, std::string& fault) {
  Descriptor socket = new_stream_socket(target);
  if (socket && target.address.ss_family != AF_UNIX) tune(socket);
  if (socket &&
      (connect(socket.get(), target.generic(), target.bytes) == 0 || errno == EINPROGRESS))
    return socket;
  fault = error_text(errno);
  return {};
}

Descriptor take_connection(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) tune(socket);  // to no effect on a Unix socket
  return socket;
}

std::string origin_of(const Descriptor& socket) {
  const auto peer = peer_address_of(socket);
  if (!peer) return "an address that is gone";
  if (peer->address.ss_family != AF_UNIX) return peer->text();
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return "this machine";
  return "pid " + std::to_string(who.pid);
}

}  // namespace dunlin::rendezvous
