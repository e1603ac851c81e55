#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/tls.hpp>

#include "fabric/meeting/frame.hpp"

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

/// TLS 1.3 around a meeting's channel, from OpenSSL's libssl; no other file here knows it. Both
/// sides show a certificate. The channel's own proofs stay within it: a certificate says who may
/// come near, the secret who belongs to this group.
namespace dunlin::meeting {

/// How a record of TLS begins: a handshake, or an alert. A meeting's frame begins otherwise.
[[nodiscard]] constexpr bool begins_tls(std::byte first) noexcept {
  return first == std::byte{0x16} || first == std::byte{0x15};
}
/// What whoever speaks no TLS is answered, and recognizes TLS by: the alert protocol_version.
[[nodiscard]] std::vector<std::byte> tls_refusal();

/// What a member needs for all its sessions.
class Tls {
 public:
  /// Error names the file, and what is wrong with it; or which are missing.
  explicit Tls(const TlsFiles& files);
  /// Error if other members would not accept our certificate: expired, or not of this CA.
  void check_own_certificate() const;

 private:
  friend class TlsSession;
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  void take_certificate() const;
  void take_key() const;
  void take_ca() const;

  TlsFiles files_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// One connection's: what arrived in, what to say out, no socket.
class TlsSession {
 public:
  TlsSession(const Tls& tls, Side self);

  void receive(Bytes encrypted);
  /// What the other side has said since the last call.
  [[nodiscard]] std::vector<std::byte> take_content();
  /// Only when established. What it costs to hold is in output() until it has been sent.
  void send(Bytes content);

  [[nodiscard]] bool established() const noexcept { return established_ && fault_.empty(); }
  /// Why it came to nothing: "does not accept our certificate (unknown CA)".
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

  [[nodiscard]] Bytes output() const noexcept { return Bytes(output_).subspan(sent_bytes_); }
  void was_sent(std::size_t bytes);

 private:
  struct Free {
    void operator()(ssl_st* session) const noexcept;
  };
  void advance();
  void fail(int result);
  void collect_output();

  std::unique_ptr<ssl_st, Free> session_;
  bio_st* arriving_ = nullptr;  // the session's
  bio_st* leaving_ = nullptr;
  bool established_ = false;
  std::string fault_;
  std::vector<std::byte> content_;
  std::vector<std::byte> output_;
  std::size_t sent_bytes_ = 0;
};

}  // namespace dunlin::meeting
