#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric/tls.hpp>

#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/hello.hpp"

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

/// TLS 1.3 between host and joiner, from OpenSSL's libssl (openssl.hpp). The group's secret makes
/// the pre-shared key, with an ephemeral key exchange (psk_dhe_ke), so a recording stays secret
/// when the secret is lost later. With certificates, TLS authenticates by them and knows no
/// pre-shared key; the secret is then proved by values bound to the session (proof_of).
namespace dunlin::rendezvous {

/// The external identity of the pre-shared key. It is readable on the wire, so all groups have one.
inline constexpr std::string_view kIdentity = "dunlin rendezvous 2";
/// The labels of the keys that are derived from the secret.
inline constexpr std::string_view kPreSharedKeyLabel = "dunlin rendezvous 2: pre-shared key";
inline constexpr std::string_view kProofKeyLabel = "dunlin rendezvous 2: key of the proofs";

/// The fault of the other side of a connection.
enum class Fault : std::uint8_t {
  none,
  garbage,        // does not speak our protocol, or broke it
  other_version,  // TlsSession::peer() says which
  wrong_secret,   // does not know our secret
  turned_away,    // says that we do not know its secret
  certificate     // TlsSession::fault_text() says more
};

/// The keys and contexts for all sessions of a member.
class Tls {
 public:
  /// Throws Error that names the file and its fault, or the missing files.
  Tls(std::string_view secret, const TlsFiles& files);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  /// Throws Error if other members would not accept our certificate: expired, or not of this CA.
  void check_own_certificate() const;
  [[nodiscard]] const Protocol& protocol() const noexcept { return protocol_; }

 private:
  friend class TlsSession;
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  void use_secret();
  void use_certificates() const;
  void take_certificate() const;
  void take_key() const;
  void take_ca() const;

  TlsFiles files_;
  Protocol protocol_;
  Digest pre_shared_key_;
  Digest proof_key_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// The session of one connection: bytes that arrived go in, bytes to send come out; no socket.
class TlsSession {
 public:
  TlsSession(const Tls& tls, Side self);

  /// Takes bytes that arrived; after a fault, takes nothing more.
  void receive(Bytes arrived);
  /// The content that the other side has sent since the last call.
  [[nodiscard]] std::vector<std::byte> take_content();
  /// Sends content. Requires an established session. The encrypted bytes stay in output() until
  /// they have been sent.
  void send(Bytes content);

  [[nodiscard]] bool established() const noexcept { return established_ && fault_ == Fault::none; }
  /// Whether the handshake is done, or whether we, as a host, have accepted a ClientHello.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }
  [[nodiscard]] Fault fault() const noexcept { return fault_; }
  /// For Fault::certificate: "does not accept our certificate (unknown CA)".
  [[nodiscard]] const std::string& fault_text() const noexcept { return fault_text_; }
  /// The other side's protocol, if it differs from ours and the other side says so.
  [[nodiscard]] const Protocol& peer() const noexcept { return *peer_; }

  /// A proof within an established session that a side knows the secret; not valid in another
  /// session.
  [[nodiscard]] Digest proof_of(Side side) const;

  [[nodiscard]] Bytes output() const noexcept { return Bytes(output_).subspan(sent_bytes_); }
  void was_sent(std::size_t bytes);

 private:
  struct Free {
    void operator()(ssl_st* session) const noexcept;
  };
  [[nodiscard]] bool begins(Bytes arrived);
  void advance();
  void read_content();
  void fail(int result);
  void fail(Fault fault, const std::string& text = "");
  void judge_peer();
  void judge_alert(int alert);
  void collect_output();

  Side self_;
  Protocol own_;
  Digest proof_key_;
  std::unique_ptr<ssl_st, Free> session_;
  bio_st* arriving_ = nullptr;  // owned by the session
  bio_st* leaving_ = nullptr;
  std::unique_ptr<Protocol> peer_;  // in a place that OpenSSL's callback knows
  std::vector<std::byte> first_;    // the first bytes, until it is known what begins with them
  bool began_ = false;
  bool greeted_ = false;
  bool established_ = false;
  Fault fault_ = Fault::none;
  std::string fault_text_;
  std::vector<std::byte> content_;
  std::vector<std::byte> output_;
  std::size_t sent_bytes_ = 0;
};

}  // namespace dunlin::rendezvous
