#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "relay/frame.hpp"

/// The bytes of one connection on their way: as they are, or within TLS 1.3 by the group's secret.
/// No socket.
///
///  RLY-9  With a secret, no content passes in either direction before the handshake has proved
///         that the other side knows the secret.
namespace dunlin::relay {

/// Takes and gives the bytes of a connection.
class Pipe {
 public:
  Pipe() = default;
  virtual ~Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Takes what arrived, and appends its content. False if the other side is not to be spoken to
  /// any more: fault() says why.
  [[nodiscard]] virtual bool receive(Bytes arrived, Buffer& content) = 0;
  /// Content can be sent.
  [[nodiscard]] virtual bool open() const noexcept = 0;
  /// Takes some of it, and returns how much: less than all if what waits is enough already.
  [[nodiscard]] virtual std::size_t send(Bytes content) = 0;
  /// The bytes for the socket.
  [[nodiscard]] virtual Bytes output() const noexcept = 0;
  virtual void was_sent(std::size_t bytes) = 0;
  [[nodiscard]] virtual std::string fault() const = 0;
};

[[nodiscard]] std::unique_ptr<Pipe> make_plain_pipe();

/// The state that all connections of one side share. Thread-safe once made.
class Secrets {
 public:
  Secrets() = default;
  virtual ~Secrets() = default;
  Secrets(const Secrets&) = delete;
  Secrets& operator=(const Secrets&) = delete;
  [[nodiscard]] virtual std::unique_ptr<Pipe> make_pipe(Side self) const = 0;
};
/// Null without a secret. Error if this build has no OpenSSL, or the secret is too short.
[[nodiscard]] std::unique_ptr<Secrets> make_secrets(const std::string& secret);

}  // namespace dunlin::relay
