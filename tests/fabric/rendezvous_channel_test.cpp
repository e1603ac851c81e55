#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "fabric/bytes.hpp"
#include "fabric/rendezvous/channel.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef";

const Tls& tls_of_members() {
  static const Tls tls(kSecret, {});
  return tls;
}

std::string hex(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::byte b : bytes) {
    text += kDigits[std::to_integer<std::size_t>(b >> 4)];
    text += kDigits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return text;
}

std::vector<std::byte> taken_from(Channel& from) {
  const Bytes output = from.output();
  std::vector<std::byte> bytes(output.begin(), output.end());
  from.was_sent(bytes.size());
  return bytes;
}

void carry(Channel& from, Channel& to) { to.receive(taken_from(from)); }

std::vector<std::byte> round_body(std::uint32_t round) {
  std::vector<std::byte> body;
  Writer(body).u32(round);
  return body;
}

/// Both sides of a connection, whose bytes go where the test says.
struct Pair {
  Channel joiner{Side::joiner, tls_of_members()};
  Channel host{Side::host, tls_of_members()};

  void trust() {
    carry(joiner, host);
    carry(host, joiner);
    carry(joiner, host);
    ASSERT_TRUE(joiner.proved());
    ASSERT_TRUE(host.proved());
  }
};

class RendezvousChannel : public testing::Test {
 protected:
  Pair pair_;
  Channel& joiner_ = pair_.joiner;
  Channel& host_ = pair_.host;
};

TEST_F(RendezvousChannel, TrustsWhoKnowsTheSecret) {
  carry(joiner_, host_);
  EXPECT_TRUE(host_.greeted());
  EXPECT_FALSE(host_.proved());
  carry(host_, joiner_);
  EXPECT_TRUE(joiner_.proved());
  EXPECT_FALSE(host_.proved());
  carry(joiner_, host_);
  EXPECT_TRUE(host_.proved());
}

TEST_F(RendezvousChannel, TakesBytesOneByOne) {
  for (int i = 0; i < 2; ++i) {
    for (std::byte b : taken_from(joiner_)) host_.receive(Bytes(&b, 1));
    for (std::byte b : taken_from(host_)) joiner_.receive(Bytes(&b, 1));
  }
  EXPECT_TRUE(joiner_.proved());
  joiner_.send(FrameType::have, round_body(1));
  for (std::byte b : taken_from(joiner_)) host_.receive(Bytes(&b, 1));
  EXPECT_EQ(host_.take_frames().size(), 1u);
}

TEST_F(RendezvousChannel, HidesWhatIsSaid) {
  pair_.trust();
  host_.send(FrameType::news, std::vector<std::byte>(1000, std::byte{'s'}));
  EXPECT_EQ(hex(host_.output()).find("7373737373737373"), std::string::npos);
}

// --- the secret ----------------------------------------------------------------------------------

/// By RDV-N1 a host says nothing about the group before the joiner has proved itself.
TEST_F(RendezvousChannel, DoesNotTrustWhoKnowsAnotherSecret) {
  const Tls wrong("another secret!!", {});
  Channel stranger(Side::joiner, wrong);
  carry(stranger, host_);
  EXPECT_EQ(host_.fault(), Fault::wrong_secret);
  EXPECT_FALSE(host_.greeted());
  EXPECT_FALSE(host_.proved());
  carry(host_, stranger);
  EXPECT_EQ(stranger.fault(), Fault::turned_away);
}

TEST_F(RendezvousChannel, DoesNotTrustARecording) {
  std::vector<std::byte> recorded = taken_from(joiner_);
  host_.receive(recorded);
  carry(host_, joiner_);
  const std::vector<std::byte> finished = taken_from(joiner_);
  recorded.insert(recorded.end(), finished.begin(), finished.end());
  Channel next(Side::host, tls_of_members());
  next.receive(recorded);
  EXPECT_EQ(next.fault(), Fault::garbage);
  EXPECT_FALSE(next.proved());
}

/// Nobody proves anything with what we said ourselves.
TEST_F(RendezvousChannel, DoesNotTrustItsMirror) {
  joiner_.receive(taken_from(joiner_));
  EXPECT_EQ(joiner_.fault(), Fault::garbage);
  Pair pair;
  pair.trust();
  pair.host.send(FrameType::go, round_body(1));
  pair.host.receive(taken_from(pair.host));
  EXPECT_EQ(pair.host.fault(), Fault::garbage);
}

// --- the beginning -------------------------------------------------------------------------------

TEST_F(RendezvousChannel, TellsAJoinerOfAnotherVersion) {
  std::vector<std::byte> hello = taken_from(joiner_);
  const std::string name = name_of({}), next = "dunlin/9";
  const auto at =
      std::search(hello.begin(), hello.end(), bytes_of(name).begin(), bytes_of(name).end());
  ASSERT_NE(at, hello.end());
  std::copy(bytes_of(next).begin(), bytes_of(next).end(), at);
  host_.receive(hello);
  EXPECT_EQ(host_.fault(), Fault::other_version);
  EXPECT_EQ(host_.peer_version(), 9);
  EXPECT_EQ(hex(host_.output()), "444e4c4d03000000");
  Channel next_joiner(Side::joiner, tls_of_members());
  std::vector<std::byte> refusal = taken_from(host_);
  refusal[4] = std::byte{4};
  next_joiner.receive(refusal);
  EXPECT_EQ(next_joiner.fault(), Fault::other_version);
  EXPECT_EQ(next_joiner.peer_version(), 4);
}

/// "call" of version 1, with its length and number, and the nonce to come.
TEST_F(RendezvousChannel, KnowsVersionOneThoughItHadNoTls) {
  host_.receive(bytes_of(std::string_view("DNLM\1\0\1\0\40\0\0\0\0\0\0\0", 16)));
  EXPECT_EQ(host_.fault(), Fault::other_version);
  EXPECT_EQ(host_.peer_version(), 1);
}

TEST_F(RendezvousChannel, HangsUpAtTheFirstWrongByte) {
  host_.receive(bytes_of("DNLX"));
  EXPECT_EQ(host_.fault(), Fault::garbage);
  Channel other(Side::host, tls_of_members());
  other.receive(bytes_of("G"));
  EXPECT_EQ(other.fault(), Fault::garbage);
  EXPECT_TRUE(other.output().empty());
}

TEST_F(RendezvousChannel, BelievesNoHelloThatIsLongerThanHellosAre) {
  for (const std::uint32_t length : {kMaxHelloBytes + 1, 1u << 17, 0xffffffu}) {
    std::vector<std::byte> hello{std::byte{0x16}, std::byte{3}, std::byte{1},
                                 std::byte{2},    std::byte{0}, std::byte{1}};
    for (const int shift : {16, 8, 0}) hello.push_back(static_cast<std::byte>(length >> shift));
    Channel host(Side::host, tls_of_members());
    host.receive(hello);
    EXPECT_EQ(host.fault(), Fault::garbage) << length;
  }
}

TEST_F(RendezvousChannel, ReadsNoProtocolFromAListThatIsNotOurs) {
  const auto list = [](const std::string& name) {
    const std::string text =
        std::string{'\0', static_cast<char>(name.size() + 1), static_cast<char>(name.size())} +
        name;
    return protocol_in(bytes_of(text));
  };
  EXPECT_EQ(list("dunlin/3"), Protocol{});
  EXPECT_EQ(list("dunlin/65535+certificates"), (Protocol{65535, true}));
  for (const char* name :
       {"", "h2", "dunlin/", "dunlin/x", "dunlin/3x", "dunlin/03", "dunlin/65536", "dunlin/-1",
        "dunlin/3+certificates+certificates", "dunlin/+certificates"})
    EXPECT_FALSE(list(name).has_value()) << name;
  EXPECT_FALSE(protocol_in({}).has_value());
  EXPECT_FALSE(protocol_in(bytes_of(std::string_view("\0\t\10dunlin/3x", 12))).has_value());
}

// --- frames --------------------------------------------------------------------------------------

/// RDV-N2 promises what this test checks.
TEST_F(RendezvousChannel, NoticesAChangedBit) {
  for (std::size_t i = 0, bytes = 1; i < bytes; ++i) {
    Pair pair;
    pair.trust();
    pair.joiner.send(FrameType::have, round_body(1));
    std::vector<std::byte> wrong = taken_from(pair.joiner);
    bytes = wrong.size();
    wrong[i] ^= std::byte{1};
    pair.host.receive(wrong);
    pair.host.receive(std::vector<std::byte>(kMaxBodyBytes));  // whatever it was waiting for
    EXPECT_EQ(pair.host.fault(), Fault::garbage) << "byte " << i;
    EXPECT_TRUE(pair.host.take_frames().empty()) << "byte " << i;
  }
}

TEST_F(RendezvousChannel, NoticesWhatIsRepeatedOrLeftOut) {
  for (const bool repeated : {true, false}) {
    Pair pair;
    pair.trust();
    pair.joiner.send(FrameType::have, round_body(1));
    const std::vector<std::byte> first = taken_from(pair.joiner);
    pair.joiner.send(FrameType::have, round_body(2));
    if (repeated) pair.host.receive(first);
    pair.host.receive(repeated ? first : taken_from(pair.joiner));
    EXPECT_EQ(pair.host.fault(), Fault::garbage);
    EXPECT_EQ(pair.host.take_frames().size(), repeated ? 1u : 0u);
  }
}

TEST_F(RendezvousChannel, TakesNothingThatIsNotToBeSaidNow) {
  const auto is_garbage = [](Side from, bool trusted, Bytes bytes) {
    FrameReader reader(from);
    if (trusted) reader.expect_trust();
    return reader.take(bytes) == FrameReader::Got::garbage;
  };
  const std::vector<std::byte> have = encode(FrameType::have, round_body(1));
  EXPECT_FALSE(is_garbage(Side::joiner, true, have));
  EXPECT_TRUE(is_garbage(Side::joiner, false, have)) << "before the proof";
  EXPECT_TRUE(is_garbage(Side::host, true, have)) << "what only a joiner says";
  const std::vector<std::byte> proof = encode(FrameType::joiner_proof, Digest{});
  EXPECT_FALSE(is_garbage(Side::joiner, false, proof));
  EXPECT_TRUE(is_garbage(Side::joiner, true, proof)) << "a second proof";
  EXPECT_TRUE(is_garbage(Side::joiner, true, encode(FrameType{77}, {})));
  std::vector<std::byte> odd = have;
  odd[6] = std::byte{1};
  EXPECT_TRUE(is_garbage(Side::joiner, true, odd)) << "what is always zero";
}

/// The header is enough.
TEST_F(RendezvousChannel, BelievesNoLengthThatIsNotPossible) {
  for (const std::uint32_t length : {0u, 3u, 5u, 1u << 20, 0xffffffffu}) {
    std::vector<std::byte> have;
    Writer writer(have);
    writer.u32(length);
    writer.u16(static_cast<std::uint16_t>(FrameType::have));
    writer.u16(0);
    FrameReader reader(Side::joiner);
    reader.expect_trust();
    Bytes bytes(have);
    EXPECT_EQ(reader.take(bytes), FrameReader::Got::garbage) << length;
    EXPECT_LE(reader.held_bytes(), 64u);
  }
}

// --- another implementation ----------------------------------------------------------------------

int offer_key_of_example(SSL* session, const EVP_MD*, const unsigned char** identity,
                         std::size_t* bytes, SSL_SESSION** made);

/// A joiner as docs/formats/rendezvous.md has it, from OpenSSL alone.
class PlainJoiner {
 public:
  PlainJoiner() : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_psk_use_session_callback(context_, offer_key_of_example);
    constexpr std::string_view kList = "\10dunlin/3";
    SSL_CTX_set_alpn_protos(context_, reinterpret_cast<const unsigned char*>(kList.data()),
                            static_cast<unsigned int>(kList.size()));
    session_ = SSL_new(context_);
    SSL_set_bio(session_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(session_);
  }
  ~PlainJoiner() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  PlainJoiner(const PlainJoiner&) = delete;
  PlainJoiner& operator=(const PlainJoiner&) = delete;

  [[nodiscard]] SSL* session() { return session_; }
  [[nodiscard]] std::vector<std::byte> output() {
    std::vector<std::byte> bytes(4096);
    const int got = BIO_read(SSL_get_wbio(session_), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  void meet(Channel& host) {
    for (int i = 0; i < 2; ++i) {
      SSL_do_handshake(session_);
      host.receive(output());
      const std::vector<std::byte> answer = taken_from(host);
      BIO_write(SSL_get_rbio(session_), answer.data(), static_cast<int>(answer.size()));
    }
  }

 private:
  SSL_CTX* context_;
  SSL* session_;
};

/// The example on that page, computed with another implementation of HKDF.
int offer_key_of_example(SSL* session, const EVP_MD*, const unsigned char** identity,
                         std::size_t* bytes, SSL_SESSION** made) {
  constexpr std::string_view kKey =
      "5e1f27d90e6e22a5571e801fc8fafd4792f5f3774152af00e850ac6b23ea73c2";
  constexpr std::string_view kName = "dunlin rendezvous 2";
  std::array<unsigned char, 32> key{};
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<unsigned char>(std::stoi(std::string(kKey.substr(2 * i, 2)), nullptr, 16));
  constexpr std::array<unsigned char, 2> kAes128GcmSha256{0x13, 0x01};
  *made = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(*made, key.data(), key.size());
  SSL_SESSION_set_cipher(*made, SSL_CIPHER_find(session, kAes128GcmSha256.data()));
  SSL_SESSION_set_protocol_version(*made, TLS1_3_VERSION);
  *identity = reinterpret_cast<const unsigned char*>(kName.data());
  *bytes = kName.size();
  return 1;
}

TEST_F(RendezvousChannel, SpeaksAsTheFormatSays) {
  PlainJoiner joiner;
  joiner.meet(host_);
  ASSERT_TRUE(host_.proved());
  constexpr std::string_view kHave("\4\0\0\0\25\0\0\0\1\0\0\0", 12);
  SSL_write(joiner.session(), kHave.data(), static_cast<int>(kHave.size()));
  host_.receive(joiner.output());
  const std::vector<Frame> frames = host_.take_frames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::have);
  EXPECT_EQ(frames[0].body, round_body(1));
}

/// Each demand is answered, and somebody who never reads the answers could fill our memory.
TEST_F(RendezvousChannel, DoesNotAnswerForEverWhoNeverReads) {
  PlainJoiner joiner;
  joiner.meet(host_);
  std::size_t demands = 0;
  for (; host_.fault() == Fault::none && demands < 100'000; ++demands) {
    SSL_key_update(joiner.session(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(joiner.session());
    host_.receive(joiner.output());
  }
  EXPECT_EQ(host_.fault(), Fault::garbage);
  EXPECT_LT(demands, 100'000u);
  EXPECT_LT(host_.output().size(), 300'000u);
}

}  // namespace
}  // namespace dunlin::rendezvous
