#include <openssl/ssl.h>
#include <sys/stat.h>

#include "fabric/meeting_certificates.hpp"
#include "fabric/meeting_group.hpp"

/// A meeting within TLS: who is trusted, and what those are told who are not.
namespace dunlin::meeting {
namespace {

using namespace test;

class MeetingTls : public testing::Test {
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

TEST_F(MeetingTls, MembersMeet) {
  for (const std::string& address : {fresh_address(), fresh_tcp_address()}) {
    address_ = address;
    MemberThread one(secured(3), "one"), two(secured(3, authority_.issue("other")), "two");
    const Roster three = meet_with(secured(3), std::string(kMaxCardBytes, 'x'));
    EXPECT_EQ(one.roster().key, three.key);
    EXPECT_EQ(two.roster().key, three.key);
    EXPECT_EQ(two.roster().members[three.rank].card.size(), kMaxCardBytes);
  }
}

TEST_F(MeetingTls, ManyMembersMeet) {
  std::vector<std::unique_ptr<MemberThread>> members;
  for (int i = 0; i < 20; ++i)
    members.push_back(std::make_unique<MemberThread>(secured(20), std::string(2000, 'x')));
  for (auto& member : members) EXPECT_EQ(member->roster().key, members[0]->roster().key);
}

TEST_F(MeetingTls, HidesWhatIsSaid) {
  const Tls tls(files_);
  TlsSession host(tls, Side::host), guest(tls, Side::guest);
  const std::string secret_words(1000, 's');
  std::vector<std::byte> seen;
  const auto carry = [&](TlsSession& from, TlsSession& to) {
    const Bytes output = from.output();
    seen.insert(seen.end(), output.begin(), output.end());
    to.receive(output);
    from.was_sent(output.size());
  };
  while (!host.established()) {
    carry(guest, host);
    carry(host, guest);
  }
  guest.send(bytes_of(secret_words));
  carry(guest, host);
  EXPECT_EQ(text_of(host.take_content()), secret_words);
  EXPECT_EQ(text_of(seen).find("ssssssss"), std::string::npos);
}

TEST_F(MeetingTls, TheSecretStillCounts) {
  MemberThread host(secured(2));
  wait_for_a_host();
  Options wrong = secured(2);
  wrong.secret = "not what all members know";
  EXPECT_TRUE(contains(fault_of(wrong), "knows another secret than this member"));
  expect_to_meet(host);
}

// --- who is not trusted --------------------------------------------------------------------------

TEST_F(MeetingTls, WhoHasACertificateOfAnotherAuthorityIsToldAndTheOthersMeet) {
  const Authority other("another authority");
  MemberThread host(secured(2));
  wait_for_a_host();
  const std::string fault = fault_of(secured(2, other.issue("stranger")));
  EXPECT_TRUE(contains(fault, "shows a certificate that is not accepted"));
  expect_to_meet(host);
}

/// It believes the host, and the host does not believe it.
TEST_F(MeetingTls, WhoseCertificateTheHostDoesNotAcceptIsToldAndTheOthersMeet) {
  const Authority other("another authority");
  TlsFiles credulous = other.issue("stranger");
  credulous.ca = files_.ca;
  EXPECT_TRUE(contains(fault_with(credulous), "would not be accepted by other members"));

  MemberThread host(secured(2));
  const Tls unchecked(credulous);
  Connection guest(connect_to(address_), Side::guest, kSecret, &unchecked);
  while (guest.tls_fault().empty()) {
    static_cast<void>(guest.write());
    wait_for_news_of(guest.socket());
    static_cast<void>(guest.read());
  }
  EXPECT_TRUE(contains(guest.tls_fault(), "does not accept our TLS or our certificate"));
  expect_to_meet(host);
}

TEST_F(MeetingTls, WhoseCertificateHasExpiredIsToldAndTheOthersMeet) {
  const TlsFiles expired = authority_.issue("late", {.from_s = -7200, .to_s = -3600});
  EXPECT_TRUE(contains(fault_with(expired), "certificate has expired"));

  MemberThread host(secured(2));
  const Tls unchecked(expired);
  Connection guest(connect_to(address_), Side::guest, kSecret, &unchecked);
  while (guest.tls_fault().empty()) {
    static_cast<void>(guest.write());
    wait_for_news_of(guest.socket());
    static_cast<void>(guest.read());
  }
  EXPECT_TRUE(contains(guest.tls_fault(), "certificate expired"));
  expect_to_meet(host);
}

TEST_F(MeetingTls, WhoComesWithoutTlsIsToldAndTheOthersMeet) {
  MemberThread host(secured(2));
  wait_for_a_host();
  EXPECT_TRUE(contains(fault_of(counted(address_, 2)), "speaks TLS, and we have none"));
  expect_to_meet(host);
}

TEST_F(MeetingTls, WhoComesWithTlsToAMeetingWithoutIsToldAndTheOthersMeet) {
  MemberThread host(counted(address_, 2));
  wait_for_a_host();
  EXPECT_TRUE(contains(fault_of(secured(2)), "speaks no TLS, and we do"));
  const Roster second = meet_with(counted(address_, 2));
  EXPECT_EQ(host.roster().key, second.key);
}

TEST_F(MeetingTls, TheHostSaysWhomItTurnedAway) {
  std::string fault;
  for (std::uint32_t ms = kSoonMs; !contains(fault, "speaks no TLS, and we do"); ms *= 2) {
    Options options = secured(2);
    options.timeout_ms = ms;
    MemberThread host(options);
    const Descriptor stranger = connect_to(address_);
    const std::vector<std::byte> call = encode(FrameType::call, 0, random_digest());
    static_cast<void>(send(stranger.get(), call.data(), call.size(), MSG_NOSIGNAL));
    fault = host.fault();
  }
  EXPECT_TRUE(contains(fault, "Turned away: 1 without a proof"));
}

TEST_F(MeetingTls, NothingOlderThanTls13IsSpoken) {
  MemberThread host(secured(2));
  const Descriptor socket = connect_to(address_);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL* const session = SSL_new(context);
  SSL_set_fd(session, socket.get());
  while (SSL_connect(session) <= 0 && SSL_get_error(session, -1) == SSL_ERROR_WANT_READ)
    wait_for_news_of(socket);
  EXPECT_FALSE(SSL_is_init_finished(session));
  SSL_free(session);
  SSL_CTX_free(context);
  expect_to_meet(host);
}

/// Each says the beginning of a handshake, and no more.
TEST_F(MeetingTls, SlowHandshakesDoNotKeepMembersOut) {
  MemberThread host(secured(2));
  const Tls tls(files_);
  const TlsSession guest(tls, Side::guest);
  const Bytes hello = guest.output();
  std::vector<Descriptor> slow;
  for (std::size_t i = 0; i < 200; ++i) {
    slow.push_back(connect_to(address_));
    static_cast<void>(send(slow.back().get(), hello.data(), 1 + i % hello.size(), MSG_NOSIGNAL));
  }
  expect_to_meet(host);
}

// --- what is wrong with the files ----------------------------------------------------------------

TEST_F(MeetingTls, RefusesToBeHalfConfigured) {
  TlsFiles files = files_;
  files.key.clear();
  EXPECT_TRUE(contains(fault_with(files), "half configured: `key` not given"));
  files.ca.clear();
  EXPECT_TRUE(contains(fault_with(files), "`key` and `ca` not given"));
  files = files_;
  files.certificate.clear();
  EXPECT_TRUE(contains(fault_with(files), "`certificate` not given"));
}

TEST_F(MeetingTls, SaysWhichFileIsWrong) {
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

TEST_F(MeetingTls, RefusesAKeyThatOthersMayRead) {
  EXPECT_EQ(chmod(files_.key.c_str(), 0644), 0);
  EXPECT_TRUE(contains(fault_with(files_), "chmod 600"));
}

TEST_F(MeetingTls, RefusesACertificateThatIsGoodForOneSideOnly) {
  EXPECT_TRUE(contains(fault_with(authority_.issue("server", {.purposes = "serverAuth"})),
                       "good for servers and clients"));
  EXPECT_TRUE(contains(fault_with(authority_.issue("client", {.purposes = "clientAuth"})),
                       "good for servers and clients"));
}

}  // namespace
}  // namespace dunlin::meeting
