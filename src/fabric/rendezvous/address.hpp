#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "fabric/system.hpp"

/// Where a rendezvous is held: one address that all members know, and that one of them can bind.
namespace dunlin::rendezvous {

struct Address {
  std::string text;  // as the user gave it
  std::string unix_name = {};
  std::string host = {};
  std::string port = {};

  [[nodiscard]] bool is_unix() const noexcept { return !unix_name.empty(); }
};
/// Error if it is not "host:port", "[v6]:port" or "unix:NAME".
[[nodiscard]] Address parse_address(const std::string& text);

/// Whether every machine understands it as itself: "localhost", "127.0.0.1", "::1".
[[nodiscard]] bool means_loopback(const std::string& host);

/// An address as the operating system connects to it and listens at it.
struct SocketAddress {
  sockaddr_storage address{};
  socklen_t bytes = 0;
  /// The loopback address, for a name that elsewhere is this machine's: other machines could not
  /// reach a listener there, so the host listens at all addresses.
  bool own_name = false;

  [[nodiscard]] const sockaddr* generic() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
  [[nodiscard]] std::string text() const;
};

/// A socket address of IP as people write it, "10.0.0.7:40112"; empty if it is none.
[[nodiscard]] std::string address_text(std::span<const std::byte> socket_address);

/// Where it is now: a name may have several addresses, or none yet. `fault` then says why. Asks the
/// resolver, which may take its time.
[[nodiscard]] std::vector<SocketAddress> resolve(const Address& address, std::string& fault);

struct Claim {
  Descriptor listener = {};
  SocketAddress at = {};
  std::string fault = {};  // why there is no listener, unless another process has it
};
/// Listens at the first target that is this machine's; nowhere if another process does already.
[[nodiscard]] Claim claim(const std::vector<SocketAddress>& targets);

/// A connection that is being made: writable when it is, or has failed.
[[nodiscard]] Descriptor begin_to_connect(const SocketAddress& target, std::string& fault);
/// Why it failed; empty if it stands.
[[nodiscard]] std::string connection_fault(const Descriptor& socket);

/// Takes a connection that waits at a listener; none if there is none, or errno says why.
[[nodiscard]] Descriptor take_connection(const Descriptor& listener);
/// "10.0.0.7:40112", or "pid 4711".
[[nodiscard]] std::string origin_of(const Descriptor& socket);

}  // namespace dunlin::rendezvous
