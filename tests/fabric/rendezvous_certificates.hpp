#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <dunlin/fabric/tls.hpp>

/// Certificates for tests of TLS, made when they run.
namespace dunlin::rendezvous::test {

/// A folder that goes with its object.
class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "certificates-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Validity {
  long from_s = -3600;  // from now
  long to_s = 3600;
  const char* purposes = "serverAuth,clientAuth";
};

/// Signs certificates of members; two of them do not believe each other.
class Authority {
 public:
  explicit Authority(const std::string& name) : name_(name), key_(EVP_EC_gen("P-256")) {
    certificate_ = made(name, key_.get(), {.purposes = nullptr});
    write_certificate(folder_.file("ca.pem"), certificate_.get());
  }

  /// The three files of a member.
  [[nodiscard]] TlsFiles issue(const std::string& name, const Validity& validity = {}) const {
    TlsFiles files{.certificate = folder_.file(name + ".pem"),
                   .key = folder_.file(name + ".key"),
                   .ca = folder_.file("ca.pem")};
    const Key key(EVP_EC_gen("P-256"));
    write_certificate(files.certificate, made(name, key.get(), validity).get());
    write_key(files.key, key.get(), nullptr);
    return files;
  }
  /// The same, but for a key that needs a password.
  [[nodiscard]] TlsFiles issue_with_password(const std::string& name) const {
    TlsFiles files = issue(name);
    const Key key(EVP_EC_gen("P-256"));
    write_key(files.key, key.get(), EVP_aes_128_cbc());
    return files;
  }

 private:
  template <auto Function>
  struct FreeBy {
    template <class T>
    void operator()(T* object) const noexcept {
      Function(object);
    }
  };
  using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
  using Bio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;

  [[nodiscard]] Certificate made(const std::string& name, EVP_PKEY* key,
                                 const Validity& validity) const {
    Certificate certificate(X509_new());
    X509* const raw = certificate.get();
    const bool of_authority = certificate_ == nullptr;
    X509_set_version(raw, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(raw), std::rand());
    X509_gmtime_adj(X509_getm_notBefore(raw), validity.from_s);
    X509_gmtime_adj(X509_getm_notAfter(raw), validity.to_s);
    X509_set_pubkey(raw, key);
    X509_NAME* const subject = X509_get_subject_name(raw);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(raw, of_authority ? subject : X509_get_subject_name(certificate_.get()));
    extend(raw, NID_basic_constraints, of_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (validity.purposes != nullptr) extend(raw, NID_ext_key_usage, validity.purposes);
    EXPECT_GT(X509_sign(raw, key_.get(), EVP_sha256()), 0);
    return certificate;
  }
  static void extend(X509* certificate, int what, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    EXPECT_EQ(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
  }
  static void write_certificate(const std::string& path, X509* certificate) {
    const Bio file(BIO_new_file(path.c_str(), "w"));
    EXPECT_EQ(PEM_write_bio_X509(file.get(), certificate), 1);
  }
  static void write_key(const std::string& path, EVP_PKEY* key, const EVP_CIPHER* cipher) {
    const Bio file(BIO_new_file(path.c_str(), "w"));
    std::string password = "password";
    EXPECT_EQ(PEM_write_bio_PrivateKey(file.get(), key, cipher, nullptr, 0, nullptr,
                                       cipher == nullptr ? nullptr : password.data()),
              1);
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  }

  Folder folder_;
  std::string name_;
  Key key_;
  Certificate certificate_;
};

}  // namespace dunlin::rendezvous::test
