#include "fabric/tcp/secure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <sys/socket.h>

#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/openssl.hpp"

namespace dunlin::tcp {
namespace {

constexpr std::string_view kPairKeyLabel = "dunlin tcp 1: pre-shared key";
using openssl::check, openssl::FreeBy, openssl::raw;

PairKey pair_key(const stream::Proof& of_lower, const stream::Proof& of_higher) {
  std::array<std::byte, 2 * stream::kProofBytes> both;
  std::copy(of_lower.begin(), of_lower.end(), both.begin());
  std::copy(of_higher.begin(), of_higher.end(), both.begin() + stream::kProofBytes);
  return rendezvous::derived_key(both, kPairKeyLabel);
}

// --- a socket as OpenSSL sees it -----------------------------------------------------------------

/// Sends without SIGPIPE, which OpenSSL's own function would raise when the peer is gone. And after
/// a write that has failed, OpenSSL reads nothing any more, although what the peer has sent before
/// is still here; so it is told that all was written, and the session remembers the error.
int send_quietly(BIO* bio, const char* bytes, int count) {
  int socket = -1;
  BIO_get_fd(bio, &socket);
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(socket, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<int>(sent);
  if (BIO_sock_should_retry(-1) != 0) {
    BIO_set_retry_write(bio);
    return -1;
  }
  if (auto* const broken = static_cast<int*>(BIO_get_app_data(bio))) *broken = errno;
  return count;
}

/// A method like that of OpenSSL's sockets, kernel TLS included, except for how it sends.
const BIO_METHOD* quiet_socket() {
  static const std::unique_ptr<BIO_METHOD, FreeBy<BIO_meth_free>> method = [] {
    const BIO_METHOD* const usual = BIO_s_socket();
    std::unique_ptr<BIO_METHOD, FreeBy<BIO_meth_free>> made(
        BIO_meth_new(BIO_TYPE_SOCKET, "quiet socket"));
    const bool good = made != nullptr && BIO_meth_set_write(made.get(), send_quietly) == 1 &&
                      BIO_meth_set_read(made.get(), BIO_meth_get_read(usual)) == 1 &&
                      BIO_meth_set_puts(made.get(), BIO_meth_get_puts(usual)) == 1 &&
                      BIO_meth_set_ctrl(made.get(), BIO_meth_get_ctrl(usual)) == 1 &&
                      BIO_meth_set_create(made.get(), BIO_meth_get_create(usual)) == 1 &&
                      BIO_meth_set_destroy(made.get(), BIO_meth_get_destroy(usual)) == 1;
    check(good, "making a BIO");
    return made;
  }();
  return method.get();
}

const Security& security_of(SSL* connection) {
  return *static_cast<const Security*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
}

int offer_pair_key(SSL* connection, const EVP_MD*, const unsigned char** identity,
                   std::size_t* bytes, SSL_SESSION** made) {
  const auto& own = *static_cast<const std::string*>(SSL_get_app_data(connection));
  const PairKey* const key = security_of(connection).find(own);
  *identity = raw(own);
  *bytes = own.size();
  *made = key == nullptr ? nullptr : openssl::session_with(*key, connection);
  return *made == nullptr ? 0 : 1;
}

int find_pair_key(SSL* connection, const unsigned char* identity, std::size_t bytes,
                  SSL_SESSION** made) {
  *made = nullptr;
  const PairKey* const key =
      security_of(connection).find({reinterpret_cast<const char*>(identity), bytes});
  if (key == nullptr) return 1;
  *made = openssl::session_with(*key, connection);
  return *made == nullptr ? 0 : 1;
}

constexpr std::size_t kReadAheadBytes = std::size_t{1} << 17;

}  // namespace

void Security::Free::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

Security::Security(Rank rank) : rank_(rank), context_(openssl::new_context()) {
  SSL_CTX* const context = context_.get();
  openssl::use_pre_shared_key(context, offer_pair_key, find_pair_key);
  SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // OpenSSL reads several records with one call, instead of each with two.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
  SSL_CTX_set_app_data(context, this);
}

Security::~Security() {
  for (auto& [peer, key] : keys_) OPENSSL_cleanse(key.data(), key.size());
}

void Security::add(Rank peer, const stream::Proof& ours, const stream::Proof& theirs) {
  keys_[peer] = rank_ < peer ? pair_key(ours, theirs) : pair_key(theirs, ours);
}

std::string Security::identity_of(Rank one, Rank other) {
  return "dunlin tcp 1 between " + std::to_string(std::min(one, other)) + " and " +
         std::to_string(std::max(one, other));
}

const PairKey* Security::find(std::string_view identity) const {
  for (const auto& [peer, key] : keys_)
    if (identity == identity_of(peer, rank_)) return &key;
  return nullptr;
}

void SecureSession::Free::operator()(ssl_st* session) const noexcept { SSL_free(session); }

SecureSession::SecureSession(const Security& security, int socket, Rank callee)
    : session_(SSL_new(security.context_.get())) {
  ERR_clear_error();
  BIO* const bio = session_ == nullptr ? nullptr : BIO_new(quiet_socket());
  check(bio != nullptr, "making a TLS session");
  BIO_set_fd(bio, socket, BIO_NOCLOSE);
  BIO_set_app_data(bio, &broken_);
  SSL_set_bio(session_.get(), bio, bio);
  if (callee == kCalled) {
    SSL_set_accept_state(session_.get());
    return;
  }
  identity_ = Security::identity_of(security.rank_, callee);
  SSL_set_app_data(session_.get(), &identity_);
  SSL_set_connect_state(session_.get());
}

SecureSession::Handshake SecureSession::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  if (result == 1) return Handshake::complete;
  const int error = SSL_get_error(session_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return Handshake::reads;
  return error == SSL_ERROR_WANT_WRITE ? Handshake::writes : Handshake::failed;
}

bool SecureSession::in_kernel() const noexcept {
  return BIO_get_ktls_send(SSL_get_wbio(session_.get())) &&
         BIO_get_ktls_recv(SSL_get_rbio(session_.get()));
}

/// Converts a failed call into the result of a system call.
ssize_t SecureSession::failure(int result) const noexcept {
  const int error = SSL_get_error(session_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    errno = EAGAIN;
    return -1;
  }
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error == SSL_ERROR_SYSCALL && errno != 0 && errno != EAGAIN) return -1;
  errno = EPROTO;
  return -1;
}

ssize_t SecureSession::send(std::span<const iovec> pieces) noexcept {
  if (broken_ != 0) {
    errno = broken_;
    return -1;
  }
  std::size_t total = 0;
  std::size_t at = 0;  // in the first piece
  for (;;) {
    // The bytes at the front of the pieces are staged already.
    const std::size_t had = staged_bytes_;
    std::size_t passed = 0;
    while (passed < kRecordBytes && !pieces.empty() && (had == 0 || passed < had)) {
      const std::size_t most = (had == 0 ? kRecordBytes : had) - passed;
      const std::size_t count = std::min(most, pieces[0].iov_len - at);
      if (had == 0)
        std::memcpy(staged_.get() + passed, static_cast<const std::byte*>(pieces[0].iov_base) + at,
                    count);
      passed += count;
      at += count;
      if (at == pieces[0].iov_len) {
        pieces = pieces.subspan(1);
        at = 0;
      }
    }
    if (passed == 0) break;
    staged_bytes_ = passed;
    errno = 0;
    const int result = SSL_write(session_.get(), staged_.get(), static_cast<int>(staged_bytes_));
    if (result <= 0) return total > 0 ? static_cast<ssize_t>(total) : failure(result);
    if (broken_ != 0) {
      errno = broken_;
      return -1;
    }
    total += staged_bytes_;
    staged_bytes_ = 0;
  }
  return static_cast<ssize_t>(total);
}

ssize_t SecureSession::receive(std::span<const iovec> pieces) noexcept {
  if (over_) {
    errno = over_error_;
    return over_error_ == 0 ? 0 : -1;
  }
  std::size_t total = 0;
  for (const iovec& piece : pieces) {
    for (std::size_t at = 0; at < piece.iov_len;) {
      errno = 0;
      std::size_t got = 0;
      const int result = SSL_read_ex(session_.get(), static_cast<std::byte*>(piece.iov_base) + at,
                                     piece.iov_len - at, &got);
      if (result <= 0) {
        const ssize_t failed = failure(result);
        over_ = failed == 0 || errno != EAGAIN;
        if (over_) over_error_ = failed == 0 ? 0 : errno;
        return total > 0 ? static_cast<ssize_t>(total) : failed;
      }
      at += got;
      total += got;
    }
  }
  return static_cast<ssize_t>(total);
}

}  // namespace dunlin::tcp
