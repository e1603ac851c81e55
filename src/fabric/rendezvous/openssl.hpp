#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <dunlin/error.hpp>

/// What a rendezvous and the tcp fabric both need of OpenSSL's libssl: errors, and TLS 1.3 with
/// pre-shared keys.
namespace dunlin::openssl {

template <auto Function>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    Function(object);
  }
};

inline std::string last_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

inline void check(bool good, const char* what) {
  if (!good) throw Error(std::string(what) + " failed in OpenSSL's libssl: " + last_reason());
}

inline const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// A session must have the same as its SSL_CTX.
inline constexpr std::string_view kSessionContext = "dunlin";

/// Makes a pre-shared key what OpenSSL wants: a session that seems to have ended before this one.
/// Returns null if OpenSSL fails.
inline SSL_SESSION* session_with(const std::array<std::byte, 32>& key, SSL* connection) {
  constexpr std::array<unsigned char, 2> kAes128GcmSha256{0x13, 0x01};
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(connection, kAes128GcmSha256.data());
  std::unique_ptr<SSL_SESSION, FreeBy<SSL_SESSION_free>> made(SSL_SESSION_new());
  const bool good =
      made != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(made.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(made.get(), cipher) == 1 &&
      SSL_SESSION_set1_id_context(made.get(), raw(kSessionContext), kSessionContext.size()) == 1 &&
      SSL_SESSION_set_protocol_version(made.get(), TLS1_3_VERSION) == 1;
  return good ? made.release() : nullptr;
}

/// Makes a context of TLS 1.3 alone, in which each session proves itself.
inline SSL_CTX* new_context() {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>> made(SSL_CTX_new(TLS_method()));
  check(made != nullptr && SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_num_tickets(made.get(), 0) == 1,
        "making a context of TLS 1.3");
  SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
  return made.release();
}

/// Lets both sides find the key by these functions. Without a CA, no certificate is accepted: a
/// peer without the key gets nowhere.
inline void use_pre_shared_key(SSL_CTX* context, SSL_psk_use_session_cb_func offer,
                               SSL_psk_find_session_cb_func find) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  check(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
            SSL_CTX_set_session_id_context(context, raw(kSessionContext),
                                           static_cast<unsigned int>(kSessionContext.size())) == 1,
        "preparing for a pre-shared key");
  SSL_CTX_set_psk_use_session_callback(context, offer);
  SSL_CTX_set_psk_find_session_callback(context, find);
}

}  // namespace dunlin::openssl
