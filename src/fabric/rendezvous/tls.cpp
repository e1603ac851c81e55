#include "fabric/rendezvous/tls.hpp"

#include <array>
#include <span>
#include <utility>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "fabric/bytes.hpp"
#include "fabric/private_file.hpp"
#include "fabric/rendezvous/openssl.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::size_t kMaxKeyBytes = 65'536;
constexpr long kMaxChainBytes = 32'768;
constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kMaxUnsentBytes = 262'144;  // more than a host ever sends at once
constexpr std::string_view kJoinerExporter = "EXPORTER-dunlin-rendezvous-2-joiner";
constexpr std::string_view kHostExporter = "EXPORTER-dunlin-rendezvous-2-host";

using openssl::check, openssl::FreeBy, openssl::last_reason, openssl::raw;
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, FreeBy<X509_STORE_CTX_free>>;

/// Gives no password: OpenSSL would ask for one at the terminal.
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

// --- the callbacks of OpenSSL, which know no more than two pointers each -------------------------

SSL_SESSION* new_session_with_key(SSL* session) {
  return openssl::session_with(
      *static_cast<const Digest*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session))), session);
}

int offer_key(SSL* session, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
              SSL_SESSION** made) {
  *identity = raw(kIdentity);
  *bytes = kIdentity.size();
  *made = new_session_with_key(session);
  return *made == nullptr ? 0 : 1;
}

int find_key(SSL* session, const unsigned char* identity, std::size_t bytes, SSL_SESSION** made) {
  *made = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(identity), bytes) != kIdentity) return 1;
  *made = new_session_with_key(session);
  return *made == nullptr ? 0 : 1;
}

/// Checks the hello before OpenSSL looks for keys and certificates: a joiner of another protocol
/// must be told so.
int judge_hello(SSL* session, int* alert, void* own) {
  auto* peer = static_cast<Protocol*>(SSL_get_app_data(session));
  const unsigned char* list = nullptr;
  std::size_t bytes = 0;
  std::optional<Protocol> named;
  if (SSL_client_hello_get0_ext(session, TLSEXT_TYPE_application_layer_protocol_negotiation, &list,
                                &bytes) == 1)
    named = protocol_in(std::as_bytes(std::span(list, bytes)));
  if (named) *peer = *named;
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return named == *static_cast<const Protocol*>(own) ? SSL_CLIENT_HELLO_SUCCESS
                                                     : SSL_CLIENT_HELLO_ERROR;
}

}  // namespace

// --- what a member needs -------------------------------------------------------------------------

void Tls::Free::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

Tls::Tls(std::string_view secret, const TlsFiles& files)
    : files_(files),
      protocol_{kVersion, !files.none()},
      pre_shared_key_(derived_key(bytes_of(secret), kPreSharedKeyLabel)),
      proof_key_(derived_key(bytes_of(secret), kProofKeyLabel)) {
  if (protocol_.certificates) check_complete(files_);
  context_.reset(openssl::new_context());
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_client_hello_cb(context, judge_hello, &protocol_);
  const std::string name = protocol_list(protocol_);
  check(SSL_CTX_set_alpn_protos(context, raw(name), static_cast<unsigned int>(name.size())) == 0,
        "naming the protocol");
  protocol_.certificates ? use_certificates() : use_secret();
}

void Tls::use_secret() {
  SSL_CTX_set_app_data(context_.get(), &pre_shared_key_);
  openssl::use_pre_shared_key(context_.get(), offer_key, find_key);
}

void Tls::use_certificates() const {
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_default_passwd_cb(context_.get(), no_password);
  SSL_CTX_set_max_cert_list(context_.get(), kMaxChainBytes);
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

/// Checks the certificate as a server would, and as a client would: a member may be either.
void Tls::check_own_certificate() const {
  if (!protocol_.certificates) return;
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

TlsSession::TlsSession(const Tls& tls, Side self)
    : self_(self),
      own_(tls.protocol_),
      proof_key_(tls.proof_key_),
      session_(SSL_new(tls.context_.get())),
      peer_(std::make_unique<Protocol>(own_)) {
  arriving_ = BIO_new(BIO_s_mem());
  leaving_ = BIO_new(BIO_s_mem());
  const bool good = session_ != nullptr && arriving_ != nullptr && leaving_ != nullptr;
  if (!good) {
    BIO_free(arriving_);
    BIO_free(leaving_);
  }
  check(good, "making a TLS session");
  SSL_set_bio(session_.get(), arriving_, leaving_);  // now owned by the session
  SSL_set_app_data(session_.get(), peer_.get());
  self == Side::host ? SSL_set_accept_state(session_.get()) : SSL_set_connect_state(session_.get());
  advance();
}

void TlsSession::receive(Bytes arrived) {
  if (fault_ != Fault::none || arrived.empty()) return;
  const bool first = !began_;
  if (first && !begins(arrived)) return;
  const Bytes encrypted = first ? Bytes(first_) : arrived;
  const int bytes = static_cast<int>(encrypted.size());
  check(BIO_write(arriving_, encrypted.data(), bytes) == bytes, "taking what arrived");
  if (first) first_ = {};
  advance();
  if (output().size() > kMaxUnsentBytes) fail(Fault::garbage);  // the peer asks, and never reads
}

/// Whether TLS begins, with all that has arrived in first_.
bool TlsSession::begins(Bytes arrived) {
  first_.insert(first_.end(), arrived.begin(), arrived.end());
  const Beginning beginning = beginning_of(first_, other(self_));
  switch (beginning.of) {
    case Beginning::Of::too_little:
      break;
    case Beginning::Of::tls:
      began_ = true;
      break;
    case Beginning::Of::refusal:
      *peer_ = beginning.protocol;
      judge_peer();
      break;
    case Beginning::Of::garbage:
      fail(Fault::garbage);
  }
  return began_;
}

void TlsSession::advance() {
  ERR_clear_error();
  if (!established_) {
    const int result = SSL_do_handshake(session_.get());
    established_ = result == 1;
    if (!established_) fail(result);
    const bool by_key = established_ && SSL_session_reused(session_.get()) == 1;
    if (established_ && by_key == own_.certificates) fail(Fault::garbage);
  }
  if (established()) read_content();
  collect_output();
  greeted_ = greeted_ || established() ||
             (self_ == Side::host && fault_ == Fault::none && !output_.empty());
}

void TlsSession::read_content() {
  std::array<std::byte, kReadBytes> part;
  for (int got = 1; got > 0;) {
    got = SSL_read(session_.get(), part.data(), static_cast<int>(part.size()));
    if (got > 0)
      content_.insert(content_.end(), part.begin(), part.begin() + got);
    else
      fail(got);
  }
}

/// Handles a failed call, which is no fault if only more bytes must arrive.
void TlsSession::fail(int result) {
  if (SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ) return;
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  ERR_clear_error();
  const long verified = SSL_get_verify_result(session_.get());
  if (*peer_ != own_) return judge_peer();
  if (reason > SSL_AD_REASON_OFFSET) return judge_alert(reason - SSL_AD_REASON_OFFSET);
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY) return fail(Fault::wrong_secret);
  if (own_.certificates && verified != X509_V_OK)
    return fail(Fault::certificate, std::string("shows a certificate that is not accepted: ") +
                                        X509_verify_cert_error_string(verified));
  fail(Fault::garbage);
}

void TlsSession::fail(Fault fault, const std::string& text) {
  fault_ = fault;
  fault_text_ = text;
}

/// Judges a peer with another protocol. A host says so in a way that all versions understand.
void TlsSession::judge_peer() {
  if (peer_->version != own_.version)
    fail(Fault::other_version);
  else if (peer_->certificates != own_.certificates)
    fail(Fault::certificate, own_.certificates ? "has no certificate, and we demand one"
                                               : "demands a certificate, and we have none");
  else
    fail(Fault::garbage);
  collect_output();
  output_.clear();
  if (self_ == Side::host && fault_ != Fault::garbage) output_ = refusal_by(own_);
}

void TlsSession::judge_alert(int alert) {
  if (own_.certificates)
    return fail(Fault::certificate,
                std::string("does not accept our TLS or our certificate (it says: ") +
                    SSL_alert_desc_string_long(alert) + ")");
  // RFC 8446 asks for the first alert if the binder of a key is wrong; OpenSSL sends the other.
  const bool by_host =
      self_ == Side::joiner && (alert == SSL_AD_DECRYPT_ERROR || alert == SSL_AD_ILLEGAL_PARAMETER);
  fail(by_host ? Fault::turned_away : Fault::garbage);
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

Digest TlsSession::proof_of(Side side) const {
  const std::string_view label = side == Side::joiner ? kJoinerExporter : kHostExporter;
  Digest exported;
  check(
      SSL_export_keying_material(session_.get(), reinterpret_cast<unsigned char*>(exported.data()),
                                 exported.size(), label.data(), label.size(), nullptr, 0, 0) == 1,
      "exporting a value of the session");
  return hmac_sha256(proof_key_, exported);
}

void TlsSession::was_sent(std::size_t bytes) {
  sent_bytes_ += bytes;
  forget_front(output_, sent_bytes_);
}

}  // namespace dunlin::rendezvous
