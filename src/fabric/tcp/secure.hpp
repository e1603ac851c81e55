#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

#include <dunlin/fabric.hpp>

#include "fabric/stream/frame.hpp"

struct ssl_ctx_st;
struct ssl_st;

/// TLS 1.3 on the connections of a group that encrypts, from OpenSSL's libssl; no other file here
/// includes it.
///  TCP-E1  Each pair of members has a pre-shared key of its own, derived from the two proofs that
///      its ends show each other (STR-S7). The proofs are derived from the random key that the
///      rendezvous has given only to the members. Each connection has an ephemeral key exchange
///      besides.
///  TCP-E2  Nothing is sent or taken before the handshake is complete. There is no way back to a
///      connection that is not encrypted.
namespace dunlin::tcp {

using PairKey = std::array<std::byte, 32>;

/// The keys and contexts for a member's connections; must stay until their handshakes are complete.
class Security {
 public:
  /// Throws Error if OpenSSL fails.
  explicit Security(Rank rank);
  Security(const Security&) = delete;
  Security& operator=(const Security&) = delete;
  ~Security();

  /// Adds a peer; `ours` and `theirs` are the proofs of STR-S7.
  void add(Rank peer, const stream::Proof& ours, const stream::Proof& theirs);
  /// Called by OpenSSL's callbacks: the key for the pair that the identity names; null if it names
  /// other members.
  [[nodiscard]] const PairKey* find(std::string_view identity) const;
  [[nodiscard]] static std::string identity_of(Rank one, Rank other);

 private:
  friend class SecureSession;
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  Rank rank_;
  std::map<Rank, PairKey> keys_;  // by peer
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// The TLS session of one connection, on a connected socket.
class SecureSession {
 public:
  /// The value of `callee` if we accept the connection instead of calling.
  static constexpr Rank kCalled = UINT32_MAX;
  SecureSession(const Security& security, int socket, Rank callee);

  enum class Handshake { reads, writes, complete, failed };
  /// Continues the handshake as far as the socket allows.
  [[nodiscard]] Handshake shake_hands();
  /// Whether the kernel encrypts and decrypts, so that the socket is used like any other.
  [[nodiscard]] bool in_kernel() const noexcept;

  // These have the contracts of Wire.
  [[nodiscard]] ssize_t send(std::span<const iovec> pieces) noexcept;
  [[nodiscard]] ssize_t receive(std::span<const iovec> pieces) noexcept;

 private:
  struct Free {
    void operator()(ssl_st* session) const noexcept;
  };
  [[nodiscard]] ssize_t failure(int result) const noexcept;

  std::string identity_;  // the caller's
  std::unique_ptr<ssl_st, Free> session_;
  /// The most bytes that are encrypted at once. OpenSSL must be given the same bytes again while
  /// the socket has no room for them.
  static constexpr std::size_t kRecordBytes = 16'384;
  std::unique_ptr<std::byte[]> staged_ = std::make_unique_for_overwrite<std::byte[]>(kRecordBytes);
  std::size_t staged_bytes_ = 0;
  /// Why the socket takes nothing any more (errno). OpenSSL is not told that, so that it still
  /// receives.
  int broken_ = 0;
  /// Whether nothing more comes, after an error or an end. OpenSSL says so only once.
  bool over_ = false;
  int over_error_ = 0;
};

}  // namespace dunlin::tcp
