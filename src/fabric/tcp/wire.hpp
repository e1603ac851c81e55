#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <sys/types.h>
#include <sys/uio.h>

#include "fabric/system.hpp"
#include "fabric/tcp/secure.hpp"

/// A connected socket that never blocks; encrypted, if it has a session.
namespace dunlin::tcp {

class Wire {
 public:
  Wire() = default;
  explicit Wire(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(socket_); }

  /// Encrypts everything from now on, after the handshake.
  void encrypt(const Security& security, Rank callee);
  [[nodiscard]] bool encrypted() const noexcept { return encrypted_; }
  /// Continues the handshake; complete if there is none. From then on the kernel encrypts, where it
  /// can.
  [[nodiscard]] SecureSession::Handshake shake_hands();

  /// Hands the pieces to the kernel, in order; returns how many bytes it has taken, or -1 and
  /// errno.
  [[nodiscard]] ssize_t send(std::span<const iovec> pieces) noexcept;
  /// Fills the pieces, in order; returns how many bytes have come, 0 at the end, or -1 and errno.
  [[nodiscard]] ssize_t receive(std::span<const iovec> pieces) noexcept;
  /// Ends sending: the peer sees the end behind what it has been sent.
  void end_sending() noexcept;
  /// Ends sending, throws away what has come, and closes: so the kernel delivers what it has taken,
  /// and does not answer with a reset.
  void close() noexcept;

 private:
  Descriptor socket_;
  std::unique_ptr<SecureSession> session_;  // null where the kernel encrypts
  bool encrypted_ = false;
};

}  // namespace dunlin::tcp
