#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/system.hpp"

namespace dunlin {

/// A TCP socket at which clients arrive in their thousands. It never blocks.
class ClientListener {
 public:
  /// `address` is a number, of IPv4 or IPv6; port 0 lets the kernel choose. As many descriptors as
  /// this process may have are made available: each client is one. Error says where it cannot
  /// listen and why, and ends with `advice`.
  ClientListener(const std::string& address, std::uint16_t port, const std::string& advice);

  [[nodiscard]] int descriptor() const noexcept { return listener_.get(); }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  void close() noexcept { listener_.close(); }

  struct Arrival {
    Descriptor socket = {};
    /// There are no descriptors left: this one must be closed at once.
    bool excess = false;
  };
  /// The next client; none: no one waits.
  [[nodiscard]] std::optional<Arrival> accept();

 private:
  Descriptor listener_;
  Descriptor spare_;  // given up to turn a client away when there are no more descriptors
  std::uint16_t port_ = 0;
};

/// Whether a numeric address is this host's own, that others cannot reach.
[[nodiscard]] bool is_loopback_address(const std::string& address) noexcept;

}  // namespace dunlin
