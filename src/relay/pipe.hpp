#pragma once

#include <functional>
#include <memory>
#include <string>

#include "relay/frame.hpp"

/// The bytes of one connection on their way within TLS 1.3, by the group's secret. It uses no
/// socket.
///
///  RLY-9  With a secret, no content passes in either direction before the handshake has proved
///         that the other side knows the secret.
namespace dunlin::relay {

/// Converts between a connection's content and the bytes of its socket.
class Pipe {
 public:
  Pipe() = default;
  virtual ~Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Takes bytes that arrived, and appends their content. False if nothing may be exchanged with
  /// the other side any more: fault() says why.
  [[nodiscard]] virtual bool receive(Bytes arrived, Buffer& content) = 0;
  /// Whether content can be sent.
  [[nodiscard]] virtual bool open() const noexcept = 0;
  /// Takes some of the content, and returns how many bytes: less than all if enough waits already.
  [[nodiscard]] virtual std::size_t send(Bytes content) = 0;
  /// The bytes that the socket is to send.
  [[nodiscard]] virtual Bytes output() const noexcept = 0;
  virtual void was_sent(std::size_t bytes) = 0;
  [[nodiscard]] virtual std::string fault() const = 0;
};

/// Makes the pipe of one connection.
using PipeMaker = std::function<std::unique_ptr<Pipe>()>;
/// Returns an empty function without a secret: then connections have no pipe. Throws Error if this
/// build has no OpenSSL, or the secret is too short.
[[nodiscard]] PipeMaker pipe_maker(Side self, const std::string& secret);

}  // namespace dunlin::relay
