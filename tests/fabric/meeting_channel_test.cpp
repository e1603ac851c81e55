#include <string>

#include <gtest/gtest.h>

#include "fabric/bytes.hpp"
#include "fabric/meeting/channel.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef";

/// `first`, `first` + 1, ...
Digest counting_from(int first) {
  Digest digest;
  for (std::byte& b : digest) b = static_cast<std::byte>(first++);
  return digest;
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
class MeetingChannel : public testing::Test {
 protected:
  void trust() {
    for (int i = 0; i < 2; ++i) {
      carry(guest_, host_);
      carry(host_, guest_);
    }
    ASSERT_TRUE(guest_.proved());
    ASSERT_TRUE(host_.proved());
  }

  Channel guest_{Side::guest, kSecret, counting_from(0)};
  Channel host_{Side::host, kSecret, counting_from(32)};
};

TEST_F(MeetingChannel, TrustsWhoKnowsTheSecret) {
  carry(guest_, host_);
  carry(host_, guest_);
  EXPECT_FALSE(guest_.proved());
  carry(guest_, host_);
  EXPECT_TRUE(host_.proved());
  EXPECT_FALSE(guest_.proved());
  carry(host_, guest_);
  EXPECT_TRUE(guest_.proved());
}

TEST_F(MeetingChannel, TakesBytesOneByOne) {
  for (int i = 0; i < 2; ++i) {
    for (std::byte b : taken_from(guest_)) host_.receive(Bytes(&b, 1));
    for (std::byte b : taken_from(host_)) guest_.receive(Bytes(&b, 1));
  }
  EXPECT_TRUE(guest_.proved());
  guest_.send(FrameType::have, round_body(1));
  for (std::byte b : taken_from(guest_)) host_.receive(Bytes(&b, 1));
  EXPECT_EQ(host_.take_frames().size(), 1u);
}

/// The example in docs/formats/meeting.md, computed with another implementation.
TEST_F(MeetingChannel, SpeaksAsTheFormatSays) {
  const std::string beginning = "444e4c4d0100";
  carry(guest_, host_);
  carry(host_, guest_);
  const std::vector<std::byte> guest_proof = taken_from(guest_);
  EXPECT_EQ(hex(guest_proof),
            beginning + "03002000000001000000" +
                "ce3f2f7d51feb94eb09caf3ee88b4793fcf79e1ad9611d0d28324faacf381566");
  host_.receive(guest_proof);
  EXPECT_EQ(hex(host_.output()),
            beginning + "04002000000001000000" +
                "b6acc97e44865c1b3e535efbd9ee71287ff0e60f542fdbc499d08f6958a93f2b");
  carry(host_, guest_);
  guest_.send(FrameType::introduce, std::vector<std::byte>(kIntroductionBytes));
  static_cast<void>(taken_from(guest_));
  guest_.send(FrameType::have, round_body(1));
  EXPECT_EQ(hex(guest_.output()),
            beginning + "1500040000000300000001000000" +
                "ae39c33f05e9745398c0b6cf8020af479cb2391428a86ab24c5369c6f610f990");
}

TEST_F(MeetingChannel, DoesNotTrustWhoKnowsAnotherSecret) {
  Channel stranger(Side::guest, "another secret!!", counting_from(0));
  carry(stranger, host_);
  carry(host_, stranger);
  carry(stranger, host_);
  EXPECT_EQ(host_.fault(), Channel::Fault::wrong_proof);
  EXPECT_FALSE(host_.proved());
  carry(host_, stranger);
  EXPECT_EQ(stranger.fault(), Channel::Fault::turned_away);
}

/// A host that does not know the secret cannot pretend, either.
TEST_F(MeetingChannel, DoesNotTrustAHostWithoutTheSecret) {
  carry(guest_, host_);
  carry(host_, guest_);
  static_cast<void>(taken_from(guest_));
  guest_.receive(encode(FrameType::host_proof, 1, counting_from(7)));
  EXPECT_EQ(guest_.fault(), Channel::Fault::wrong_proof);
}

TEST_F(MeetingChannel, TellsBothSidesOfAnotherVersion) {
  std::vector<std::byte> call = taken_from(guest_);
  call[4] = std::byte{9};
  host_.receive(call);
  EXPECT_EQ(host_.fault(), Channel::Fault::other_version);
  EXPECT_EQ(host_.peer_version(), 9);
  std::vector<std::byte> answer = taken_from(host_);
  ASSERT_EQ(answer.size(), kHeaderBytes);
  answer[4] = std::byte{3};
  guest_.receive(answer);
  EXPECT_EQ(guest_.fault(), Channel::Fault::other_version);
  EXPECT_EQ(guest_.peer_version(), 3);
}

/// What the guest said to a host is no proof to the next, whose nonce is another.
TEST_F(MeetingChannel, DoesNotTrustARecording) {
  std::vector<std::byte> recorded = taken_from(guest_);
  host_.receive(recorded);
  carry(host_, guest_);
  const std::vector<std::byte> proof = taken_from(guest_);
  recorded.insert(recorded.end(), proof.begin(), proof.end());
  Channel next(Side::host, kSecret, counting_from(99));
  next.receive(recorded);
  EXPECT_EQ(next.fault(), Channel::Fault::wrong_proof);
}

/// Nobody proves anything with what we said ourselves.
TEST_F(MeetingChannel, DoesNotTrustItsMirror) {
  guest_.receive(taken_from(guest_));
  EXPECT_EQ(guest_.fault(), Channel::Fault::garbage);

  Channel guest(Side::guest, kSecret, counting_from(0));
  static_cast<void>(taken_from(guest));
  guest.receive(encode(FrameType::answer, 0, counting_from(0)));  // its own nonce
  std::vector<std::byte> proof = taken_from(guest);
  proof[6] = std::byte{static_cast<unsigned char>(FrameType::host_proof)};
  guest.receive(proof);
  EXPECT_EQ(guest.fault(), Channel::Fault::wrong_proof);
}

TEST_F(MeetingChannel, NoticesAChangedBit) {
  trust();
  guest_.send(FrameType::have, round_body(1));
  const std::vector<std::byte> right = taken_from(guest_);
  for (std::size_t i = 0; i < right.size(); ++i) {
    Channel host = host_;
    std::vector<std::byte> wrong = right;
    wrong[i] ^= std::byte{1};
    host.receive(wrong);
    host.receive(std::vector<std::byte>(kMaxBodyBytes));  // whatever it was waiting for
    EXPECT_NE(host.fault(), Channel::Fault::none) << "byte " << i;
    EXPECT_TRUE(host.take_frames().empty()) << "byte " << i;
  }
}

TEST_F(MeetingChannel, NoticesWhatIsRepeatedLeftOutOrMoved) {
  trust();
  guest_.send(FrameType::have, round_body(1));
  const std::vector<std::byte> first = taken_from(guest_);
  guest_.send(FrameType::have, round_body(2));
  const std::vector<std::byte> second = taken_from(guest_);

  Channel repeated = host_, moved = host_, mirrored = guest_;
  repeated.receive(first);
  repeated.receive(first);
  EXPECT_EQ(repeated.fault(), Channel::Fault::garbage);
  EXPECT_EQ(repeated.take_frames().size(), 1u);
  moved.receive(second);
  EXPECT_EQ(moved.fault(), Channel::Fault::garbage);
  mirrored.receive(first);
  EXPECT_EQ(mirrored.fault(), Channel::Fault::garbage);
}

TEST_F(MeetingChannel, TakesNothingOutOfOrder) {
  const auto fault_of = [](const std::vector<std::byte>& bytes) {
    Channel host(Side::host, kSecret, counting_from(32));
    host.receive(bytes);
    return host.fault();
  };
  EXPECT_EQ(fault_of(encode(FrameType::guest_proof, 0, counting_from(0))), Channel::Fault::garbage)
      << "a proof before the call";
  EXPECT_EQ(fault_of(encode(FrameType::call, 1, counting_from(0))), Channel::Fault::garbage)
      << "not the first";
  EXPECT_EQ(fault_of(encode(FrameType::have, 0, round_body(1))), Channel::Fault::garbage)
      << "before the proof";
  EXPECT_EQ(fault_of(encode(FrameType::answer, 0, counting_from(0))), Channel::Fault::garbage)
      << "what only a host says";
  EXPECT_EQ(fault_of(encode(FrameType{77}, 0, {})), Channel::Fault::garbage);
  carry(guest_, host_);
  host_.receive(encode(FrameType::call, 1, counting_from(0)));
  EXPECT_EQ(host_.fault(), Channel::Fault::garbage) << "a second call";
}

/// The header is enough, and so is what is wrong of it.
TEST_F(MeetingChannel, HangsUpAtTheFirstWrongByte) {
  host_.receive(bytes_of("DNLX"));
  EXPECT_EQ(host_.fault(), Channel::Fault::garbage);
  Channel other(Side::host, kSecret, counting_from(32));
  other.receive(bytes_of("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(other.fault(), Channel::Fault::garbage);
}

TEST_F(MeetingChannel, BelievesNoLengthThatIsNotPossible) {
  for (const std::uint32_t length : {0u, 31u, 33u, 1u << 20, 0xffffffffu}) {
    std::vector<std::byte> call;
    Writer writer(call);
    writer.u32(kMagic);
    writer.u16(kVersion);
    writer.u16(static_cast<std::uint16_t>(FrameType::call));
    writer.u32(length);
    writer.u32(0);
    FrameReader reader(Side::guest);
    Bytes bytes(call);
    EXPECT_EQ(reader.take(bytes), FrameReader::Got::garbage) << length;
    EXPECT_LE(reader.held_bytes(), 64u);
  }
}

TEST_F(MeetingChannel, HoldsNoMoreThanAProofBeforeTheProof) {
  FrameReader reader(Side::guest);
  const std::vector<std::byte> flood(1 << 20, std::byte{'D'});
  Bytes bytes(flood);
  EXPECT_EQ(reader.take(bytes), FrameReader::Got::garbage);
  EXPECT_LE(reader.held_bytes(), 64u);
}

TEST_F(MeetingChannel, VeilsAKeyForTheOtherSideOnly) {
  trust();
  const Digest key = counting_from(100);
  const Digest veiled = host_.veil(1, key);
  EXPECT_NE(veiled, key);
  EXPECT_NE(veiled, host_.veil(2, key));
  EXPECT_EQ(guest_.veil(1, veiled), key);
}

}  // namespace
}  // namespace dunlin::meeting
