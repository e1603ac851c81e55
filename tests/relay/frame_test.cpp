#include "relay/frame.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "relay/frame_fuzz.hpp"
#include "support/rounds.hpp"

namespace dunlin::test {
namespace {

using namespace dunlin::relay;

std::optional<Frame> parse(const Buffer& bytes, Side from, std::string* mistake = nullptr) {
  FrameParser parser(from);
  const auto frame = parser.parse(bytes);
  if (mistake != nullptr) *mistake = parser.mistake();
  return frame;
}

Buffer bytes_of(std::initializer_list<int> values) {
  Buffer bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(RelayFrame, HasTheBytesOfTheFormatsExample) {
  Hello hello;
  for (std::size_t i = 0; i < hello.id.size(); ++i) hello.id[i] = static_cast<std::byte>(i + 1);
  Buffer sent;
  add_hello(sent, hello);
  EXPECT_EQ(sent, bytes_of({0x20, 0,    0, 0, 1, 0,  0,  0,  0x44, 0x55, 0x4e, 0x4c, 0x49, 0x4e,
                            0x52, 0x4c, 1, 0, 0, 0,  0,  0,  0,    0,    1,    2,    3,    4,
                            5,    6,    7, 8, 9, 10, 11, 12, 13,   14,   15,   16}));
  const Buffer payload = bytes_of({7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x35, 0x40});
  Buffer sample;
  add_sample(sample, 3, 0, {.number = 1, .payload = payload});
  EXPECT_EQ(sample, bytes_of({0x20, 0, 0, 0, 5, 0, 3,    0,   1,    0,    0,    0,   0, 0,
                              0,    0, 0, 0, 0, 0, 0,    0,   0,    0,    7,    0,   0, 0,
                              0,    0, 0, 0, 0, 0, 0x00, 0x0, 0x00, 0x80, 0x35, 0x40}));
}

TEST(RelayFrame, CarriesAnOpeningWithAllItsFields) {
  const Open open{.writes = false,
                  .topic = "square",
                  .type_text = "T final plain 8\n",
                  .type_name = "T",
                  .qos = pubsub::TopicQos{.level = pubsub::Level::volatile_storage,
                                          .history = pubsub::History::keep_last(7),
                                          .max_samples = 9,
                                          .ring_bytes = 4096,
                                          .max_bytes = 1U << 20U,
                                          .max_age_ns = 5},
                  .reliability = pubsub::Reliability::best_effort(),
                  .durability = {.kind = pubsub::Durability::Kind::transient},
                  .after_beginning = 11,
                  .after_position = 12};
  Buffer sent;
  add_open(sent, 4, open);
  const auto frame = parse(sent, Side::client);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.endpoint, 4);
  const auto got = read_open(*frame);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->topic, "square");
  EXPECT_EQ(got->type_text, open.type_text);
  EXPECT_EQ(got->qos, open.qos);
  EXPECT_EQ(got->reliability, open.reliability);
  EXPECT_EQ(got->durability, open.durability);
  EXPECT_EQ(got->after_beginning, 11U);
  EXPECT_EQ(got->after_position, 12U);
}

TEST(RelayFrame, SaysWhatIsWrongBeforeTheBodyHasCome) {
  std::string mistake;
  EXPECT_FALSE(parse(bytes_of({0, 0, 0, 0, 99, 0, 0, 0}), Side::client, &mistake));
  EXPECT_EQ(mistake, "a frame of kind 99, which this side does not send");
  EXPECT_FALSE(parse(bytes_of({0, 0, 0, 0, 66, 0, 0, 0}), Side::client, &mistake));
  EXPECT_EQ(mistake, "a frame of kind 66, which this side does not send");
  EXPECT_FALSE(parse(bytes_of({255, 255, 255, 255, 5, 0, 0, 0}), Side::client, &mistake));
  EXPECT_EQ(mistake, "a frame of kind 5 with a body of 4294967295 bytes; it has 16 to 1048592");
  EXPECT_FALSE(parse(bytes_of({0, 0, 0, 0, 6, 1, 0, 0}), Side::client, &mistake));
  EXPECT_EQ(mistake, "a frame of kind 6 with the flags 1");
  EXPECT_FALSE(parse(bytes_of({0, 0, 0, 0, 6, 0, 0, 1}), Side::client, &mistake));
  EXPECT_EQ(mistake, "a frame of endpoint 256; there are 256 (kMaxEndpoints)");
  EXPECT_FALSE(parse(bytes_of({0, 0, 0, 0, 6, 0, 0}), Side::client, &mistake));
  EXPECT_EQ(mistake, "") << "it is not all there";
}

/// Frames of both sides, damaged at random, each in memory of its own, so that the address
/// sanitizer sees a look beyond its end.
TEST(RelayFrame, SurvivesDamagedFrames) {
  std::mt19937_64 random(7);
  Buffer good;
  add_hello(good, {});
  add_open(good, 1, {.writes = true, .topic = "t", .type_text = "x", .qos = pubsub::TopicQos{}});
  add_open(good, 2, {.writes = false, .topic = "t", .type_text = "x"});
  add_sample(good, 1, kXcdr, {.number = 1, .payload = good});
  add_empty(good, FrameKind::close, 2);
  Buffer answers;
  add_welcome(answers, {.name = "r"});
  add_opened(answers, 1, {.number = 3, .type_text = "x"});
  add_delivered(answers, 2, 0, {.position = 1, .payload = good});
  add_acknowledged(answers, 1, 3);
  add_sentence(answers, FrameKind::goodbye, 0, "why");
  std::size_t frames = 0;
  const std::uint64_t all = rounds(4'000);
  for (std::uint64_t i = 0; i < all; ++i) {
    Buffer bytes = i % 2 == 0 ? good : answers;
    for (std::uint64_t n = random() % 4; n > 0; --n)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(bytes.size() - random() % 40);
    frames += read_all_frames(bytes, i % 2 == 0 ? Side::client : Side::relay);
  }
  EXPECT_GT(frames, all) << "most of what comes before the damage is read";
}

}  // namespace
}  // namespace dunlin::test
