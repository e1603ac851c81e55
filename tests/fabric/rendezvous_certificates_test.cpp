#include "fabric/rendezvous_certificates.hpp"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "fabric/rendezvous_group.hpp"

/// A rendezvous with certificates: who is trusted, and what those are told who are not.
namespace dunlin::rendezvous {
namespace {

using namespace test;

class RendezvousCertificates : public testing::Test {
 protected:
  [[nodiscard]] Options secured(std::uint32_t members, const TlsFiles& files) const {
    Options options = counted(address_, members);
    options.tls = files;
    return options;
  }
  [[nodiscard]] Options secured(std::uint32_t members) const { return secured(members, files_); }
  /// A host of two, and its second member comes after all that the test does.
  void expect_to_meet(MemberThread& host) const {
    const Roster second = meet_with(secured(2), "second");
    EXPECT_EQ(host.roster().key, second.key);
  }
  void wait_for_a_host() const { static_cast<void>(connect_to(address_)); }
  [[nodiscard]] std::string fault_with(const TlsFiles& files) const {
    return fault_of(hurried(secured(1, files)));
  }

  Authority authority_{"our authority"};
  TlsFiles files_ = authority_.issue("member");
  std::string address_ = fresh_address();
};

TEST_F(RendezvousCertificates, MembersMeet) {
  for (const std::string& address : {fresh_address(), fresh_tcp_address()}) {
    address_ = address;
    MemberThread one(secured(3), "one"), two(secured(3, authority_.issue("other")), "two");
    const Roster three = meet_with(secured(3), std::string(kMaxEndpointAddressBytes, 'x'));
    EXPECT_EQ(one.roster().key, three.key);
    EXPECT_EQ(two.roster().key, three.key);
    EXPECT_EQ(two.roster().members[three.rank].endpoint_address.size(), kMaxEndpointAddressBytes);
  }
}

TEST_F(RendezvousCertificates, ManyMembersMeet) {
  std::vector<std::unique_ptr<MemberThread>> members;
  for (int i = 0; i < 20; ++i)
    members.push_back(std::make_unique<MemberThread>(secured(20), std::string(2000, 'x')));
  for (auto& member : members) EXPECT_EQ(member->roster().key, members[0]->roster().key);
}

/// Recorded within one session, a proof is of no use in another.
TEST_F(RendezvousCertificates, AProofIsBoundToItsSession) {
  const Tls tls(kSecret, files_);
  const auto proof_in_new_session = [&](const Tls& of) {
    TlsSession joiner(of, Side::joiner), host(tls, Side::host);
    while (!host.established()) {
      host.receive(joiner.output());
      joiner.was_sent(joiner.output().size());
      joiner.receive(host.output());
      host.was_sent(host.output().size());
    }
    EXPECT_NE(joiner.proof_of(Side::joiner), joiner.proof_of(Side::host));
    EXPECT_EQ(joiner.proof_of(Side::joiner) == host.proof_of(Side::joiner), &of == &tls);
    return joiner.proof_of(Side::joiner);
  };
  EXPECT_NE(proof_in_new_session(tls), proof_in_new_session(tls));
  const Tls wrong("not what all members know", files_);
  static_cast<void>(proof_in_new_session(wrong));
}

TEST_F(RendezvousCertificates, TheHostSaysWhoKnewAnotherSecret) {
  Options wrong = secured(2);
  wrong.secret = "not what all members know";
  std::string fault;
  for (std::uint32_t ms = kSoonMs; !contains(fault, "Turned away"); ms *= 2) {
    Options options = secured(2);
    options.timeout_ms = ms;
    MemberThread host(options);
    HandJoiner joiner(wrong);
    EXPECT_FALSE(joiner.prove());
    fault = host.fault();
  }
  EXPECT_TRUE(contains(fault, "does not know our secret")) << fault;
}

TEST_F(RendezvousCertificates, TheSecretStillCounts) {
  MemberThread host(secured(2));
  wait_for_a_host();
  Options wrong = secured(2);
  wrong.secret = "not what all members know";
  EXPECT_TRUE(contains(fault_of(wrong), "knows another secret than this member"));
  expect_to_meet(host);
}

// --- who is not trusted --------------------------------------------------------------------------

TEST_F(RendezvousCertificates, WhoHasACertificateOfAnotherAuthorityIsToldAndTheOthersMeet) {
  const Authority other("another authority");
  MemberThread host(secured(2));
  wait_for_a_host();
  const std::string fault = fault_of(secured(2, other.issue("stranger")));
  EXPECT_TRUE(contains(fault, "shows a certificate that is not accepted"));
  expect_to_meet(host);
}

/// It believes the host, and the host does not believe it.
TEST_F(RendezvousCertificates, WhoseCertificateTheHostDoesNotAcceptIsToldAndTheOthersMeet) {
  const Authority other("another authority");
  TlsFiles credulous = other.issue("stranger");
  credulous.ca = files_.ca;
  EXPECT_TRUE(contains(fault_with(credulous), "would not be accepted by other members"));

  MemberThread host(secured(2));
  const Tls unchecked(kSecret, credulous);
  Connection joiner(connect_to(address_), Side::joiner, unchecked);
  while (joiner.channel().fault() == Fault::none) {
    static_cast<void>(joiner.write());
    wait_for_news_of(joiner.socket());
    static_cast<void>(joiner.read());
  }
  EXPECT_TRUE(
      contains(joiner.channel().fault_text(), "does not accept our TLS or our certificate"));
  expect_to_meet(host);
}

TEST_F(RendezvousCertificates, WhoseCertificateHasExpiredIsToldAndTheOthersMeet) {
  const TlsFiles expired = authority_.issue("late", {.from_s = -7200, .to_s = -3600});
  EXPECT_TRUE(contains(fault_with(expired), "certificate has expired"));

  MemberThread host(secured(2));
  const Tls unchecked(kSecret, expired);
  Connection joiner(connect_to(address_), Side::joiner, unchecked);
  while (joiner.channel().fault() == Fault::none) {
    static_cast<void>(joiner.write());
    wait_for_news_of(joiner.socket());
    static_cast<void>(joiner.read());
  }
  EXPECT_TRUE(contains(joiner.channel().fault_text(), "certificate expired"));
  expect_to_meet(host);
}

/// As any server of TLS would answer that does not know the secret.
TEST_F(RendezvousCertificates, ACertificateIsNoSubstituteForTheSecret) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  ASSERT_EQ(SSL_CTX_use_certificate_chain_file(context, files_.certificate.c_str()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context, files_.key.c_str(), SSL_FILETYPE_PEM), 1);
  SSL* const server = SSL_new(context);
  SSL_set_bio(server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(server);
  Channel joiner(Side::joiner, our_tls());
  BIO_write(SSL_get_rbio(server), joiner.output().data(), static_cast<int>(joiner.output().size()));
  SSL_do_handshake(server);
  std::vector<std::byte> answer(65'536);
  const int bytes = BIO_read(SSL_get_wbio(server), answer.data(), static_cast<int>(answer.size()));
  ASSERT_GT(bytes, 500);  // a certificate is in it
  joiner.receive(Bytes(answer).first(static_cast<std::size_t>(bytes)));
  EXPECT_EQ(joiner.fault(), Fault::garbage);
  EXPECT_FALSE(joiner.proved());
  SSL_free(server);
  SSL_CTX_free(context);
}

TEST_F(RendezvousCertificates, WhoComesWithoutACertificateIsToldAndTheOthersMeet) {
  MemberThread host(secured(2));
  wait_for_a_host();
  EXPECT_TRUE(contains(fault_of(counted(address_, 2)), "demands a certificate, and we have none"));
  expect_to_meet(host);
}

TEST_F(RendezvousCertificates, WhoDemandsCertificatesWhereNobodyHasOneIsToldAndTheOthersMeet) {
  MemberThread host(counted(address_, 2));
  wait_for_a_host();
  EXPECT_TRUE(contains(fault_of(secured(2)), "has no certificate, and we demand one"));
  const Roster second = meet_with(counted(address_, 2));
  EXPECT_EQ(host.roster().key, second.key);
}

TEST_F(RendezvousCertificates, TheHostSaysWhomItTurnedAway) {
  std::string fault;
  for (std::uint32_t ms = kSoonMs; !contains(fault, "has no certificate, and we demand one");
       ms *= 2) {
    Options options = secured(2);
    options.timeout_ms = ms;
    MemberThread host(options);
    const Descriptor stranger = connect_to(address_);
    const std::vector<std::byte> hello = hello_of(our_tls());
    static_cast<void>(send(stranger.get(), hello.data(), hello.size(), MSG_NOSIGNAL));
    fault = host.fault();
  }
  EXPECT_TRUE(contains(fault, "Turned away: 1 without a proof"));
}

TEST_F(RendezvousCertificates, NothingOlderThanTls13IsSpoken) {
  const Tls certified(kSecret, files_);
  for (const Tls* tls : {&certified, &our_tls()}) {
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    const std::string list = protocol_list(tls->protocol());
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned int>(list.size()));
    SSL* const session = SSL_new(context);
    SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(session);
    std::array<std::byte, 4096> hello;
    const int bytes = BIO_read(SSL_get_wbio(session), hello.data(), hello.size());
    ASSERT_GT(bytes, 0);
    Channel host(Side::host, *tls);
    host.receive(Bytes(hello).first(static_cast<std::size_t>(bytes)));
    EXPECT_EQ(host.fault(), Fault::garbage);
    SSL_free(session);
    SSL_CTX_free(context);
  }
}

/// Each says the beginning of a handshake, and no more.
TEST_F(RendezvousCertificates, SlowHandshakesDoNotKeepMembersOut) {
  MemberThread host(secured(2));
  const std::vector<std::byte> hello = hello_of(Tls(kSecret, files_));
  std::vector<Descriptor> slow;
  for (std::size_t i = 0; i < 200; ++i) {
    slow.push_back(connect_to(address_));
    static_cast<void>(send(slow.back().get(), hello.data(), 1 + i % hello.size(), MSG_NOSIGNAL));
  }
  expect_to_meet(host);
}

// --- what is wrong with the files ----------------------------------------------------------------

TEST_F(RendezvousCertificates, RefusesToBeHalfConfigured) {
  TlsFiles files = files_;
  files.key.clear();
  EXPECT_TRUE(contains(fault_with(files), "half configured: `key` not given"));
  files.ca.clear();
  EXPECT_TRUE(contains(fault_with(files), "`key` and `ca` not given"));
  files = files_;
  files.certificate.clear();
  EXPECT_TRUE(contains(fault_with(files), "`certificate` not given"));
}

TEST_F(RendezvousCertificates, SaysWhichFileIsWrong) {
  TlsFiles files = files_;
  files.certificate = files_.key;
  EXPECT_TRUE(contains(fault_with(files), "(the certificate for TLS) has no certificate"));
  files = files_;
  files.ca = "/nowhere/ca.pem";
  EXPECT_TRUE(contains(fault_with(files), "'/nowhere/ca.pem' (the CA for TLS)"));
  files = files_;
  files.key = authority_.issue("other").key;
  EXPECT_TRUE(contains(fault_with(files), "is not the key of the certificate"));
  files.key = files_.certificate;
  chmod(files.key.c_str(), 0600);
  EXPECT_TRUE(contains(fault_with(files), "no key that can be read"));
  EXPECT_TRUE(contains(fault_with(authority_.issue_with_password("locked")), "not encrypted"));
}

TEST_F(RendezvousCertificates, RefusesAKeyThatOthersMayRead) {
  EXPECT_EQ(chmod(files_.key.c_str(), 0644), 0);
  EXPECT_TRUE(contains(fault_with(files_), "chmod 600"));
}

TEST_F(RendezvousCertificates, RefusesACertificateThatIsGoodForOneSideOnly) {
  EXPECT_TRUE(contains(fault_with(authority_.issue("server", {.purposes = "serverAuth"})),
                       "good for servers and clients"));
  EXPECT_TRUE(contains(fault_with(authority_.issue("client", {.purposes = "clientAuth"})),
                       "good for servers and clients"));
}

}  // namespace
}  // namespace dunlin::rendezvous
