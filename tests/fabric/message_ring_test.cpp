#include "fabric/shm/message_ring.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

namespace dunlin::shm {
namespace {

class Ring : public testing::Test {
 protected:
  using Found = MessageReceiver::Found;

  bool push(std::uint32_t channel, std::string_view text) {
    return sender_.push(*ring_, channel, std::as_bytes(std::span(text)));
  }
  std::string next() {
    if (receiver_.peek(*ring_, message_) != Found::message) return "nothing";
    receiver_.drop(*ring_);
    return {reinterpret_cast<const char*>(message_.content.data()), message_.bytes};
  }

  std::unique_ptr<MessageRing> ring_ = std::make_unique<MessageRing>();
  MessageSender sender_;
  MessageReceiver receiver_;
  Message message_;
};

TEST_F(Ring, HandsOutMessagesInOrderWithTheirChannel) {
  EXPECT_TRUE(push(3, "one"));
  EXPECT_TRUE(push(4, ""));
  EXPECT_TRUE(push(5, "three"));
  EXPECT_EQ(next(), "one");
  EXPECT_EQ(message_.channel, 3u);
  EXPECT_EQ(next(), "");
  EXPECT_EQ(message_.channel, 4u);
  EXPECT_EQ(next(), "three");
  EXPECT_EQ(next(), "nothing");
}

TEST_F(Ring, KeepsAMessageUntilItIsDropped) {
  EXPECT_TRUE(push(0, "stay"));
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::message);
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::message);
  EXPECT_EQ(next(), "stay");
  EXPECT_EQ(next(), "nothing");
}

TEST_F(Ring, RefusesWhatDoesNotFitAndTakesItLater) {
  const std::string large(kMaxMessageBytes, 'x');
  std::size_t fitted = 0;
  while (push(0, large)) ++fitted;
  EXPECT_EQ(fitted, kMessageRingBytes / (kMaxMessageBytes + kWordBytes));
  EXPECT_EQ(next(), large);
  EXPECT_TRUE(push(0, large));
}

TEST_F(Ring, CarriesEverySizeAcrossItsEnd) {
  for (std::size_t round = 0; round < 3 * kMaxMessageBytes; ++round) {
    const std::string text(round % (kMaxMessageBytes + 1), static_cast<char>('a' + round % 26));
    ASSERT_TRUE(push(1, text));
    ASSERT_EQ(next(), text) << round;
  }
}

TEST_F(Ring, CallsAnImpossibleHeadGarbage) {
  ring_->head = kMessageRingBytes + kWordBytes;
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::garbage);
  ring_->head = 3;
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::garbage);
}

TEST_F(Ring, CallsImpossibleLengthsAndChannelsGarbage) {
  const auto label = [&](std::uint64_t bytes, std::uint64_t channel) {
    const std::uint64_t word = bytes | channel << 32;
    std::memcpy(ring_->bytes.data(), &word, sizeof word);
  };
  ring_->head = 2 * kWordBytes;
  label(kMaxMessageBytes + 1, 0);
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::garbage);
  label(kWordBytes + 1, 0);  // more than the sender says it wrote
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::garbage);
  label(kWordBytes, kMaxChannels);
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::garbage);
  label(kWordBytes, kMaxChannels - 1);
  EXPECT_EQ(receiver_.peek(*ring_, message_), Found::message);
}

TEST_F(Ring, TheSenderDoesNotBelieveAnImpossibleTail) {
  const std::string large(kMaxMessageBytes, 'x');
  while (push(0, large)) {
  }
  ring_->tail = UINT64_MAX / 2;
  EXPECT_FALSE(push(0, large));
}

TEST_F(Ring, LosesAndRepeatsNothingBetweenTwoThreads) {
  constexpr std::uint64_t kMessages = 20'000;
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < kMessages; ++i)
      while (!push(static_cast<std::uint32_t>(i % kMaxChannels),
                   std::to_string(i) + std::string(i % 200, '.')))
        std::this_thread::yield();
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    std::string text = next();
    while (text == "nothing") {
      std::this_thread::yield();
      text = next();
    }
    wrong += text != std::to_string(i) + std::string(i % 200, '.');
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace dunlin::shm
