#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fabric/socket_address.hpp"

/// Where a rendezvous is held: one address that all members know, and that one of them can bind.
namespace dunlin::rendezvous {

struct Address {
  std::string text;  // as the user gave it
  std::string unix_name = {};
  std::string host = {};
  std::string port = {};

  [[nodiscard]] bool is_unix() const noexcept { return !unix_name.empty(); }
};
/// Throws Error if the text is not "host:port", "[v6]:port" or "unix:NAME".
[[nodiscard]] Address parse_address(const std::string& text);

/// Whether every machine takes the host for itself: "localhost", "127.0.0.1", "::1".
[[nodiscard]] bool means_loopback(const std::string& host);

/// An IP socket address as people write it, "10.0.0.7:40112"; empty if it is not one.
[[nodiscard]] std::string address_text(std::span<const std::byte> socket_address);

/// The present socket addresses: a name may have several, or none yet, and then `fault` says why.
/// Asks the resolver, which may take its time.
[[nodiscard]] std::vector<SocketAddress> resolve(const Address& address, std::string& fault);

struct Claim {
  Descriptor listener = {};
  SocketAddress at = {};
  std::string fault = {};  // why there is no listener, unless another process has it
};
/// Listens at the first target that is this machine's; at none if another process listens there
/// already.
[[nodiscard]] Claim claim(const std::vector<SocketAddress>& targets);

/// Begins to connect; the socket is writable when it is connected, or has failed.
[[nodiscard]] Descriptor begin_to_connect(const SocketAddress& target, std::string& fault);

/// Accepts a connection that waits at a listener; returns none if no connection waits, or errno
/// says why.
[[nodiscard]] Descriptor take_connection(const Descriptor& listener);
/// The other end of a connection, for messages: "10.0.0.7:40112", or "pid 4711".
[[nodiscard]] std::string origin_of(const Descriptor& socket);

}  // namespace dunlin::rendezvous
