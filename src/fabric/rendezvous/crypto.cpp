#include "fabric/rendezvous/crypto.hpp"

#include <memory>
#include <string>
#include <vector>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <dunlin/error.hpp>

namespace dunlin::rendezvous {
namespace {

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(Digest& digest) { return reinterpret_cast<unsigned char*>(digest.data()); }

void check(bool good, const char* what) {
  if (good) return;
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  throw Error(std::string(what) + " failed in OpenSSL's libcrypto: " + reason.data());
}

}  // namespace

Digest hmac_sha256(Bytes key, Bytes content) {
  Digest digest;
  unsigned int bytes = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   raw(content), content.size(), raw(digest), &bytes);
  check(done != nullptr && bytes == digest.size(), "computing an HMAC");
  return digest;
}

Digest sha256(Bytes content) {
  Digest digest;
  unsigned int bytes = 0;
  const int done =
      EVP_Digest(content.data(), content.size(), raw(digest), &bytes, EVP_sha256(), nullptr);
  check(done == 1 && bytes == digest.size(), "computing a hash");
  return digest;
}

Digest random_digest() {
  Digest digest;
  check(RAND_bytes(raw(digest), static_cast<int>(digest.size())) == 1, "drawing random bytes");
  return digest;
}

Digest derived_key(Bytes secret, std::string_view label) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> hkdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(hkdf.get()), EVP_KDF_CTX_free);
  check(context != nullptr, "preparing to derive a key");
  std::string hash = "SHA256", info(label);
  std::vector<std::byte> key(secret.begin(), secret.end());
  const std::array<OSSL_PARAM, 4> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  Digest derived;
  const int done = EVP_KDF_derive(context.get(), raw(derived), derived.size(), parameters.data());
  OPENSSL_cleanse(key.data(), key.size());
  check(done == 1, "deriving a key");
  return derived;
}

bool equal_in_constant_time(Bytes a, Bytes b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace dunlin::rendezvous
