#include "fabric/meeting/tls.hpp"

#include <array>
#include <utility>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <dunlin/error.hpp>

#include "fabric/private_file.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::size_t kMaxKeyBytes = 65'536;
constexpr long kMaxChainBytes = 32'768;
constexpr std::size_t kReadBytes = 4096;

template <auto Function>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    Function(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, FreeBy<X509_STORE_CTX_free>>;

std::string last_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

void check(bool good, const char* what) {
  if (!good) throw Error(std::string(what) + " failed in OpenSSL's libssl: " + last_reason());
}

/// OpenSSL would ask for a password at the terminal.
int no_password(char*, int, int, void*) { return -1; }

void check_complete(const TlsFiles& files) {
  std::string missing;
  const auto note = [&](const std::string& file, const char* name) {
    if (file.empty()) missing += (missing.empty() ? "" : " and ") + std::string(name);
  };
  note(files.certificate, "`certificate`");
  note(files.key, "`key`");
  note(files.ca, "`ca`");
  if (!missing.empty())
    throw Error("TLS is half configured: " + missing +
                " not given. Give certificate, key and ca, or none of them");
}

}  // namespace

std::vector<std::byte> tls_refusal() {
  constexpr std::array kAlert{0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46};
  std::vector<std::byte> record;
  record.reserve(kAlert.size());
  for (const int byte : kAlert) record.push_back(static_cast<std::byte>(byte));
  return record;
}

// --- what a member needs -------------------------------------------------------------------------

void Tls::Free::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

Tls::Tls(const TlsFiles& files) : files_(files) {
  check_complete(files_);
  ERR_clear_error();
  context_.reset(SSL_CTX_new(TLS_method()));
  check(context_ != nullptr, "making a TLS context");
  SSL_CTX* const context = context_.get();
  check(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "asking for TLS 1.3");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // each session shows certificates
  check(SSL_CTX_set_num_tickets(context, 0) == 1, "doing without tickets");
  SSL_CTX_set_default_passwd_cb(context, no_password);
  SSL_CTX_set_max_cert_list(context, kMaxChainBytes);
  take_ca();
  take_certificate();
  take_key();
}

void Tls::take_ca() const {
  if (SSL_CTX_load_verify_file(context_.get(), files_.ca.c_str()) != 1)
    throw Error("the file '" + files_.ca + "' (the CA for TLS) has no certificates that can be " +
                "read: " + last_reason());
}

void Tls::take_certificate() const {
  if (SSL_CTX_use_certificate_chain_file(context_.get(), files_.certificate.c_str()) != 1)
    throw Error(
        "the file '" + files_.certificate +
        "' (the certificate for TLS) has no certificate that can be read: " + last_reason());
}

void Tls::take_key() const {
  std::string text = read_private_file(files_.key, "the private key for TLS", kMaxKeyBytes);
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  check(bio != nullptr, "reading a private key");
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  OPENSSL_cleanse(text.data(), text.size());
  const std::string file = "the file '" + files_.key + "' (the private key for TLS) ";
  if (!key)
    throw Error(file + "has no key that can be read (" + last_reason() +
                "): it must be in PEM, and not encrypted");
  if (SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1)
    throw Error(file + "is not the key of the certificate '" + files_.certificate +
                "': " + last_reason());
}

/// As those who listen would, and as those who call would: a member may be either.
void Tls::check_own_certificate() const {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context_.get(), static_cast<void*>(&chain));
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    const Verification verification(X509_STORE_CTX_new());
    check(verification != nullptr &&
              X509_STORE_CTX_init(verification.get(), SSL_CTX_get_cert_store(context_.get()),
                                  SSL_CTX_get0_certificate(context_.get()), chain) == 1 &&
              X509_STORE_CTX_set_purpose(verification.get(), purpose) == 1,
          "checking a certificate");
    if (X509_verify_cert(verification.get()) == 1) continue;
    const int error = X509_STORE_CTX_get_error(verification.get());
    ERR_clear_error();
    throw Error("the certificate '" + files_.certificate +
                "' would not be accepted by other members: " +
                X509_verify_cert_error_string(error) + ". It must be in force, be signed by '" +
                files_.ca + "', and be good for servers and clients");
  }
}

// --- one connection's ----------------------------------------------------------------------------

void TlsSession::Free::operator()(ssl_st* session) const noexcept { SSL_free(session); }

TlsSession::TlsSession(const Tls& tls, Side self) : session_(SSL_new(tls.context_.get())) {
  arriving_ = BIO_new(BIO_s_mem());
  leaving_ = BIO_new(BIO_s_mem());
  const bool good = session_ != nullptr && arriving_ != nullptr && leaving_ != nullptr;
  if (!good) {
    BIO_free(arriving_);
    BIO_free(leaving_);
  }
  check(good, "making a TLS session");
  SSL_set_bio(session_.get(), arriving_, leaving_);  // owns them now
  self == Side::host ? SSL_set_accept_state(session_.get()) : SSL_set_connect_state(session_.get());
  advance();
}

void TlsSession::receive(Bytes encrypted) {
  if (!fault_.empty() || encrypted.empty()) return;
  const int bytes = static_cast<int>(encrypted.size());
  check(BIO_write(arriving_, encrypted.data(), bytes) == bytes, "taking what arrived");
  advance();
}

void TlsSession::advance() {
  ERR_clear_error();
  if (!established_) {
    const int result = SSL_do_handshake(session_.get());
    established_ = result == 1;
    if (!established_) fail(result);
  }
  std::array<std::byte, kReadBytes> part;
  while (established()) {
    const int got = SSL_read(session_.get(), part.data(), static_cast<int>(part.size()));
    if (got <= 0) {
      fail(got);
      break;
    }
    content_.insert(content_.end(), part.begin(), part.begin() + got);
  }
  collect_output();
}

/// Or rather does not, if only more must arrive.
void TlsSession::fail(int result) {
  if (SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ) return;
  const long verified = SSL_get_verify_result(session_.get());
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET) {
    const int alert = reason - SSL_AD_REASON_OFFSET;
    fault_ = std::string("does not accept our TLS or our certificate (it says: ") +
             SSL_alert_desc_string_long(alert) + ")";
  } else if (verified != X509_V_OK) {
    fault_ = std::string("shows a certificate that is not accepted: ") +
             X509_verify_cert_error_string(verified);
  } else {
    fault_ = "does not speak TLS 1.3 as it must be (" + last_reason() + ")";
  }
  ERR_clear_error();
}

void TlsSession::collect_output() {
  std::array<std::byte, kReadBytes> part;
  for (int got = 1; got > 0;) {
    got = BIO_read(leaving_, part.data(), static_cast<int>(part.size()));
    if (got > 0) output_.insert(output_.end(), part.begin(), part.begin() + got);
  }
}

std::vector<std::byte> TlsSession::take_content() { return std::exchange(content_, {}); }

void TlsSession::send(Bytes content) {
  if (!established() || content.empty()) return;
  ERR_clear_error();
  const int bytes = static_cast<int>(content.size());
  const int sent = SSL_write(session_.get(), content.data(), bytes);
  if (sent != bytes) fail(sent);
  collect_output();
}

void TlsSession::was_sent(std::size_t bytes) {
  sent_bytes_ += bytes;
  if (sent_bytes_ < output_.size()) return;
  output_.clear();
  sent_bytes_ = 0;
}

}  // namespace dunlin::meeting
