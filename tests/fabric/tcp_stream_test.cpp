#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "fabric/tcp/incoming.hpp"
#include "fabric/tcp/outgoing.hpp"

/// The two directions of a connection, without a network: bytes that the kernel takes and hands out
/// in whatever pieces it likes.
namespace dunlin::tcp {
namespace {

using TestBytes = std::vector<std::byte>;

/// Keeps the frames; the first word of a frame that has bytes behind it says how many places they
/// have.
class KeepingReceiver final : public stream::Receiver {
 public:
  explicit KeepingReceiver(std::size_t room) : memory(room) {}

  void take_frame(Rank, std::span<const std::byte> frame) override {
    frames.emplace_back(frame.begin(), frame.end());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame.data()) % kWordBytes, 0U);
    behind.emplace_back(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(used));
    used = 0;
  }
  void take_end(Rank, std::string) override {}
  bool find_places(Rank, std::span<const std::byte> frame,
                   std::vector<stream::Place>& places) override {
    if (refuses) return false;
    std::uint64_t left = 0;
    std::memcpy(&left, frame.data(), sizeof left);
    used = left;
    for (std::size_t at = 0; left > 0; left -= places.back().bytes) {
      const std::size_t piece = std::min<std::size_t>(left, piece_bytes);
      places.push_back({memory.data() + at, piece});
      at += piece;
    }
    return true;
  }

  TestBytes memory;
  std::size_t used = 0;
  std::size_t piece_bytes = 700;
  bool refuses = false;
  std::vector<TestBytes> frames;
  std::vector<TestBytes> behind;
};

TestBytes drawn_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed);
  TestBytes made(count);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

/// Prefix, frame, what is behind it, and padding.
struct Sent {
  TestBytes frame;
  TestBytes behind;
  void append_to(TestBytes& stream) const {
    const Prefix prefix{static_cast<std::uint32_t>(frame.size()),
                        static_cast<std::uint32_t>(behind.size())};
    const auto* const at = reinterpret_cast<const std::byte*>(&prefix);
    stream.insert(stream.end(), at, at + sizeof prefix);
    stream.insert(stream.end(), frame.begin(), frame.end());
    stream.insert(stream.end(), behind.begin(), behind.end());
    stream.resize(stream.size() + padding_of(behind.size()));
  }
};

Sent drawn_frame(std::size_t words, std::size_t behind, unsigned seed) {
  Sent made{drawn_bytes(words * kWordBytes, seed), drawn_bytes(behind, seed + 1)};
  const std::uint64_t count = behind;
  std::memcpy(made.frame.data(), &count, sizeof count);
  return made;
}

/// As the kernel would: fills what is wanted with at most so many bytes of the stream.
bool feed(Incoming& incoming, const TestBytes& stream, std::size_t& at, std::size_t most,
          stream::Receiver& receiver, Scratch& scratch) {
  std::size_t filled = 0;
  for (const iovec& piece : incoming.wanted(scratch)) {
    const std::size_t count = std::min({piece.iov_len, most - filled, stream.size() - at});
    std::memcpy(piece.iov_base, stream.data() + at, count);
    at += count;
    filled += count;
  }
  return incoming.take(filled, 1, receiver, scratch);
}

/// TCP-I1 promises whole frames in their order.
TEST(TcpIncoming, PutsFramesTogetherHoweverTheyAreCut) {
  std::vector<Sent> sent;
  for (const std::size_t behind : {0U, 5U, 0U, 4096U, 10'240U, 1U, 0U, 262'144U, 0U})
    sent.push_back(drawn_frame(1 + behind % 11, behind, static_cast<unsigned>(sent.size())));
  sent.push_back(drawn_frame(stream::kMaxFrameBytes / kWordBytes, 0, 77));
  TestBytes stream;
  for (const Sent& one : sent) one.append_to(stream);
  for (const std::size_t most : {1UL, 3UL, 8UL, 13UL, 1000UL, 65'543UL, 1UL << 20}) {
    KeepingReceiver receiver(kMaxBehindBytes);
    Scratch scratch;
    Incoming incoming;
    for (std::size_t at = 0; at < stream.size();)
      ASSERT_TRUE(feed(incoming, stream, at, most, receiver, scratch));
    ASSERT_EQ(receiver.frames.size(), sent.size()) << most;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(receiver.frames[i], sent[i].frame);
      EXPECT_EQ(receiver.behind[i], sent[i].behind);
    }
  }
}

/// By TCP-I2 the bytes behind a frame are received straight into several places.
TEST(TcpIncoming, FillsMorePlacesThanOneCallTakes) {
  const Sent sent = drawn_frame(3, 5000, 1);
  TestBytes stream;
  sent.append_to(stream);
  sent.append_to(stream);
  KeepingReceiver receiver(kMaxBehindBytes);
  receiver.piece_bytes = 7;
  Scratch scratch;
  Incoming incoming;
  for (std::size_t at = 0; at < stream.size();)
    ASSERT_TRUE(feed(incoming, stream, at, stream.size(), receiver, scratch));
  EXPECT_EQ(receiver.behind, (std::vector{sent.behind, sent.behind}));
}

TEST(TcpIncoming, BelievesNoPrefixThatCannotBe) {
  constexpr std::uint32_t kTooLong = stream::kMaxFrameBytes + 8;
  for (const Prefix prefix :
       {Prefix{0, 0}, Prefix{12, 0}, Prefix{kTooLong, 0}, Prefix{UINT32_MAX - 7, 0},
        Prefix{8, static_cast<std::uint32_t>(kMaxBehindBytes) + 1}}) {
    TestBytes stream(sizeof prefix + 64);
    std::memcpy(stream.data(), &prefix, sizeof prefix);
    KeepingReceiver receiver(64);
    Scratch scratch;
    Incoming incoming;
    std::size_t at = 0;
    EXPECT_FALSE(feed(incoming, stream, at, stream.size(), receiver, scratch));
    EXPECT_TRUE(receiver.frames.empty());
  }
}

TEST(TcpIncoming, BelievesNoFrameWhosePlacesAreNotWhatIsBehindIt) {
  for (const bool refuses : {false, true}) {
    Sent sent = drawn_frame(2, 100, 1);
    const std::uint64_t fewer = 99;
    if (!refuses) std::memcpy(sent.frame.data(), &fewer, sizeof fewer);
    TestBytes stream;
    sent.append_to(stream);
    KeepingReceiver receiver(128);
    receiver.refuses = refuses;
    Scratch scratch;
    Incoming incoming;
    std::size_t at = 0;
    EXPECT_FALSE(feed(incoming, stream, at, stream.size(), receiver, scratch));
    EXPECT_EQ(receiver.memory, TestBytes(128));
  }
}

/// TCP-I3 promises what this test checks.
TEST(TcpIncoming, WritesNothingIntoMemoryThatWasReleased) {
  const Sent sent = drawn_frame(2, 3000, 1);
  TestBytes stream;
  sent.append_to(stream);
  sent.append_to(stream);
  KeepingReceiver receiver(3000);
  Scratch scratch;
  Incoming incoming;
  std::size_t at = 0;
  while (at < 1500) ASSERT_TRUE(feed(incoming, stream, at, 500, receiver, scratch));
  const std::size_t placed = at - sizeof(Prefix) - sent.frame.size();
  incoming.forget_places(receiver.memory);
  while (receiver.frames.empty())
    ASSERT_TRUE(feed(incoming, stream, at, stream.size(), receiver, scratch));
  TestBytes expected(3000);
  std::copy_n(sent.behind.begin(), placed, expected.begin());
  EXPECT_EQ(receiver.behind.front(), expected);
}

/// Both ends of a socket whose buffer is small.
struct SmallPair {
  SmallPair() {
    std::array<int, 2> ends{};
    checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
            "socketpair");
    const int little = 4096;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    near = Wire(Descriptor(ends[0]));
    far = Wire(Descriptor(ends[1]));
  }
  /// All that is there, and more as the frames leave.
  TestBytes drain(Outgoing& outgoing) {
    TestBytes all;
    std::array<std::byte, 999> piece;
    const iovec room{piece.data(), piece.size()};
    for (;;) {
      const ssize_t got = far.receive(std::span(&room, 1));
      if (got <= 0 && !outgoing.blocked()) return all;
      if (got > 0) all.insert(all.end(), piece.begin(), piece.begin() + got);
      EXPECT_EQ(outgoing.push(near), 0);
    }
  }
  Wire near;
  Wire far;
};

/// TCP-O1, TCP-O2
TEST(TcpOutgoing, SendsWhatTheSourcesWereHoweverMuchTheKernelTakes) {
  SmallPair pair;
  FramePool pool;
  Outgoing outgoing(pool);
  TestBytes expected;
  std::vector<Sent> frames;
  for (unsigned i = 0; i < 4; ++i) frames.push_back(drawn_frame(100 + i, 40'001 * i, i));
  for (Sent& sent : frames) {
    sent.append_to(expected);
    std::byte* const at = outgoing.lend();
    ASSERT_NE(at, nullptr);
    std::copy(sent.frame.begin(), sent.frame.end(), at);
    const std::size_t half = sent.behind.size() / 2;
    ASSERT_EQ(outgoing.attach(sent.behind.data(), half), half);
    if (half % 2 == 0) outgoing.settle();
    EXPECT_EQ(outgoing.unsettled_bytes(), half % 2 == 0 ? 0 : half);
    const std::size_t rest = sent.behind.size() - half;
    ASSERT_EQ(outgoing.attach(sent.behind.data() + half, rest), rest);
    ASSERT_EQ(outgoing.commit(pair.near, sent.frame.size()), 0);
    std::fill(sent.behind.begin(), sent.behind.end(), std::byte{});  // the source changes
  }
  EXPECT_TRUE(outgoing.blocked());
  EXPECT_EQ(pair.drain(outgoing), expected);
}

TEST(TcpOutgoing, LendsNothingWhileTooMuchWaits) {
  SmallPair pair;
  FramePool pool;
  Outgoing outgoing(pool);
  std::size_t committed = 0;
  while (std::byte* const at = outgoing.lend()) {
    std::fill_n(at, stream::kMaxFrameBytes, std::byte{1});
    ASSERT_EQ(outgoing.commit(pair.near, stream::kMaxFrameBytes), 0);
    ASSERT_LT(++committed, 100U);
  }
  EXPECT_EQ(pair.drain(outgoing).size(), committed * (sizeof(Prefix) + stream::kMaxFrameBytes));
  EXPECT_NE(outgoing.lend(), nullptr);
}

TEST(TcpOutgoing, HasABoundOnWhatIsBehindAFrame) {
  FramePool pool;
  Outgoing outgoing(pool);
  const TestBytes source(kMaxBehindBytes + 1);
  EXPECT_EQ(outgoing.attach(source.data(), 1), 0U);  // to no frame
  ASSERT_NE(outgoing.lend(), nullptr);
  EXPECT_EQ(outgoing.attach(source.data(), source.size()), kMaxBehindBytes);
  EXPECT_EQ(outgoing.attach(source.data(), 1), 0U);
  outgoing.clear();
  ASSERT_NE(outgoing.lend(), nullptr);
  std::size_t sources = 0;
  while (outgoing.attach(source.data(), 1) == 1) ASSERT_LT(++sources, kMaxPieces);
}

TEST(TcpOutgoing, SaysWhyAConnectionIsBroken) {
  SmallPair pair;
  pair.far.close();
  FramePool pool;
  Outgoing outgoing(pool);
  ASSERT_NE(outgoing.lend(), nullptr);
  EXPECT_EQ(outgoing.commit(pair.near, 8), EPIPE);
}

}  // namespace
}  // namespace dunlin::tcp
