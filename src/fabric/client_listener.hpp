#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/socket_address.hpp"

namespace dunlin {

/// A TCP socket at which clients arrive in their thousands. It never blocks.
class ClientListener {
 public:
  /// `address` is an IPv4 or IPv6 address in numbers; port 0 lets the kernel choose. Raises the
  /// limit of descriptors as far as this process may, because each client needs one. Throws Error
  /// that says where it cannot listen and why, and ends with `advice`.
  ClientListener(const std::string& address, std::uint16_t port, const std::string& advice);

  [[nodiscard]] int descriptor() const noexcept { return listener_.get(); }
  [[nodiscard]] const SocketAddress& address() const noexcept { return address_; }
  void close() noexcept { listener_.close(); }

  struct Arrival {
    Descriptor socket = {};
    /// True if no descriptors are left: this client must be closed at once.
    bool excess = false;
  };
  /// The next client; none if no client waits.
  [[nodiscard]] std::optional<Arrival> accept();

 private:
  Descriptor listener_;
  Descriptor spare_;  // closed to accept and reject a client when no descriptor is left
  SocketAddress address_;
};

/// Ends what a client is sent, before its socket is closed: bytes that nobody reads would make the
/// kernel throw away the last of it.
void finish_sending(int socket) noexcept;

/// Whether a numeric address is a loopback address, which other hosts cannot reach.
[[nodiscard]] bool is_loopback_address(const std::string& address) noexcept;

}  // namespace dunlin
