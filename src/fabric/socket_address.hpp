#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "fabric/system.hpp"

namespace dunlin {

/// An address as the operating system connects to it and listens at it.
struct SocketAddress {
  sockaddr_storage address{};
  socklen_t bytes = 0;
  /// True for the loopback address of a name that elsewhere means this machine: other machines
  /// could not reach a listener there, so the host of a rendezvous listens at all addresses.
  bool own_name = false;

  [[nodiscard]] const sockaddr* generic() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
  [[nodiscard]] bool is_ip() const noexcept;
  // The port and the host are those of an IP address.
  [[nodiscard]] std::uint16_t port() const noexcept;
  void set_port(std::uint16_t number) noexcept;
  /// The host as a number: "10.0.0.7", "fe80::7%eth0".
  [[nodiscard]] std::string host() const;
  /// "10.0.0.7:40112", "[fd00::7]:40112" or "unix:NAME".
  [[nodiscard]] std::string text() const;
};

/// The address of a Unix socket without a file. What is too long of the name is left out.
[[nodiscard]] SocketAddress unix_address(std::string_view name) noexcept;
/// The IP socket address in bytes of another process; none if they are not one.
[[nodiscard]] std::optional<SocketAddress> ip_address_in(std::span<const std::byte> bytes);
/// Whether two IP socket addresses have one host, whatever their ports.
[[nodiscard]] bool same_host(const SocketAddress& one, const SocketAddress& other) noexcept;
[[nodiscard]] bool same_host(std::span<const std::byte> one, std::span<const std::byte> other);

/// The present IP addresses of a host: a name may have several, or none yet, and then `fault` says
/// why. Asks the resolver, which may take its time. `flags` are those of getaddrinfo().
[[nodiscard]] std::vector<SocketAddress> find_addresses(const std::string& host,
                                                        const std::string& port, int flags,
                                                        std::string& fault);

struct NetworkInterface {
  std::string name;
  SocketAddress at;  // with port 0
  bool is_loopback = false;
};
/// The IP addresses of all interfaces that are up; none if this process may not ask the kernel.
[[nodiscard]] std::vector<NetworkInterface> list_interfaces();

/// The address that a socket is bound to. Throws Error.
[[nodiscard]] SocketAddress own_address_of(const Descriptor& socket);
/// The other end of a connection; none if it is gone.
[[nodiscard]] std::optional<SocketAddress> peer_address_of(const Descriptor& socket);

/// A stream socket that never blocks, for addresses of this kind; none if errno says why.
[[nodiscard]] Descriptor new_stream_socket(const SocketAddress& at) noexcept;
/// Sets an option of a socket, if the socket has it.
void set_option(const Descriptor& socket, int level, int option, int value) noexcept;
/// Why connecting failed; empty if the connection stands.
[[nodiscard]] std::string connection_fault(int socket);

}  // namespace dunlin
