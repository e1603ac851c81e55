#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/pubsub/topic_type.hpp>

#include "support/rounds.hpp"

/// XCDR2, held against the bytes of another encoder: pycdr2 1.0.0, the IDL part of Cyclone DDS's
/// Python package, by `serialize(use_version_2=True)` of dataclasses with the same members.
namespace dunlin::test {
namespace {

using pubsub::Extensibility;

struct Spot {
  double x = 0;
  float y = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};
struct Nums {
  std::uint8_t a = 0;
  std::int64_t b = 0;
  std::int16_t c = 0;
  double d = 0;
  bool e = false;
  std::array<std::uint16_t, 3> f = {};
  std::string g = {};  // so that it is no plain type
};
struct Note {
  std::string text = {};
  std::vector<Spot> points = {};
  std::vector<std::uint8_t> raw = {};
  std::array<std::string, 2> names = {};
  double size = 0;
  static constexpr auto kExtensibility = Extensibility::appendable;
  friend bool operator==(const Note&, const Note&) = default;
};
struct LongerNote {
  std::string text = {};
  std::vector<Spot> points = {};
  std::vector<std::uint8_t> raw = {};
  std::array<std::string, 2> names = {};
  double size = 0;
  std::optional<std::int32_t> page = {};
  static constexpr auto kExtensibility = Extensibility::appendable;
};
struct Opt {
  std::uint8_t a = 0;
  std::optional<std::int32_t> b = {};
  std::optional<std::string> c = {};
  std::int32_t d = 0;
  friend bool operator==(const Opt&, const Opt&) = default;
};

template <class T>
std::vector<std::byte> encoded(const T& value) {
  std::vector<std::byte> bytes;
  pubsub::type_support<T>()->encode(&value, bytes);
  return bytes;
}
template <class T>
std::optional<T> decoded(std::span<const std::byte> bytes) {
  T value{};
  if (!pubsub::type_support<T>()->decode(bytes, &value)) return std::nullopt;
  return value;
}
std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    text += "0123456789abcdef"[value >> 4U];
    text += "0123456789abcdef"[value & 15U];
  }
  return text;
}
const Note kNote{
    .text = "hi", .points = {{1, 2}, {3, 4}}, .raw = {1, 2, 3}, .names = {"a", "bc"}, .size = 2.5};

TEST(CdrTest, EncodesNumbersAsAnotherEncoderDoes) {
  // The other encoder's struct ends with f; g adds its length and its final zero.
  const Nums nums{.a = 1, .b = -2, .c = 3, .d = 4.5, .e = true, .f = {7, 8, 9}};
  EXPECT_EQ(hex(encoded(nums)).substr(8, 64),
            "01000000feffffffffffffff0300000000000000000012400100070008000900");
}

TEST(CdrTest, EncodesStringsAndSequencesAsAnotherEncoderDoes) {
  EXPECT_EQ(
      hex(encoded(kNote)),
      "000900004c00000003000000686900001c00000002000000000000000000f03f000000400000000000000840"
      "0000804003000000010203000f000000020000006100000003000000626300000000000000000440");
}

TEST(CdrTest, EncodesOptionalMembersAsAnotherEncoderDoes) {
  EXPECT_EQ(hex(encoded(Opt{.a = 1, .b = 5, .d = 6})), "0007000001010000050000000000000006000000");
  EXPECT_EQ(hex(encoded(Opt{.a = 1, .c = "xyz", .d = 6})),
            "00070000010001000400000078797a0006000000");
}

struct Grid {
  std::array<std::array<std::uint16_t, 2>, 3> cells = {};
  std::string label = {};
};

TEST(CdrTest, EncodesArraysOfArraysAsAnotherEncoderDoes) {
  const Grid grid{.cells = {{{1, 2}, {3, 4}, {5, 6}}}, .label = "g"};
  // The other encoder does not fill up the last word, which RTPS asks for.
  EXPECT_EQ(hex(encoded(grid)).substr(8, 36), "010002000300040005000600020000006700");
  EXPECT_EQ(hex(encoded(grid)),
            "00070002010002000300040005000600020000006700"
            "0000");
}

enum class Colour : std::uint16_t { red = 1, green = 2 };
struct Rows {
  std::vector<std::uint8_t> bytes = {};
  std::vector<double> doubles = {};
  std::vector<Colour> colours = {};
  std::vector<std::array<std::uint16_t, 2>> pairs = {};
  std::array<std::array<bool, 2>, 2> flags = {};
  std::vector<std::int64_t> none = {};
  std::uint8_t last = 0;
  friend bool operator==(const Rows&, const Rows&) = default;
};

/// Elements that are copied at once lie where single ones would.
TEST(CdrTest, EncodesSequencesOfNumbersAsSingleNumbers) {
  const Rows rows{.bytes = {1, 2, 3},
                  .doubles = {1.5, -2},
                  .colours = {Colour::red, Colour::green, Colour::red},
                  .pairs = {{1, 2}, {3, 4}},
                  .flags = {{{true, false}, {false, true}}},
                  .none = {},
                  .last = 9};
  std::vector<std::byte> single;
  pubsub::cdr::Encoder encoder(single, false);
  encoder.number(std::uint32_t{3});
  for (const auto one : rows.bytes) encoder.number(one);
  encoder.number(std::uint32_t{2});
  for (const auto one : rows.doubles) encoder.number(one);
  encoder.number(std::uint32_t{3});
  for (const auto one : rows.colours) encoder.number(one);
  const std::size_t pairs = encoder.begin_delimited();
  encoder.number(std::uint32_t{2});
  for (const auto& pair : rows.pairs)
    for (const auto one : pair) encoder.number(one);
  encoder.end_delimited(pairs);
  for (const auto& row : rows.flags)
    for (const bool one : row) encoder.number(one);
  encoder.number(std::uint32_t{0});
  encoder.number(rows.last);
  encoder.finish();
  EXPECT_EQ(hex(encoded(rows)), hex(single));
  EXPECT_EQ(decoded<Rows>(single), rows);
  for (std::size_t length = 0; length < single.size(); ++length)
    EXPECT_FALSE(decoded<Rows>(std::span(single).first(length))) << length;
  single[single.size() - 12] = std::byte{2};  // a bool
  EXPECT_FALSE(decoded<Rows>(single));
}

TEST(CdrTest, DecodesWhatItEncoded) {
  EXPECT_EQ(decoded<Note>(encoded(kNote)), kNote);
  const Opt opt{.a = 9, .b = -1, .c = "c", .d = 4};
  EXPECT_EQ(decoded<Opt>(encoded(opt)), opt);
}

TEST(CdrTest, LetsMembersBeAppended) {
  const auto newer = decoded<LongerNote>(encoded(kNote));
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->names, kNote.names);
  EXPECT_FALSE(newer->page);
  const LongerNote longer{.text = "t", .size = 7, .page = 3};
  const auto older = decoded<Note>(encoded(longer));
  ASSERT_TRUE(older);
  EXPECT_EQ(older->text, "t");
  EXPECT_EQ(older->size, 7);
  // In the program that has the longer one, it is called Note, too.
  const std::string longer_text = pubsub::type_support<LongerNote>()->text.substr(6);
  EXPECT_TRUE(pubsub::types_match(pubsub::type_support<Note>()->text, longer_text));
  EXPECT_TRUE(pubsub::types_match(longer_text, pubsub::type_support<Note>()->text));
  EXPECT_FALSE(
      pubsub::types_match(pubsub::type_support<Opt>()->text, pubsub::type_support<Nums>()->text));
}

TEST(CdrTest, RefusesWhatIsCutShort) {
  const auto bytes = encoded(kNote);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decoded<Note>(std::span(bytes).first(length))) << length;
}

TEST(CdrTest, SurvivesAnyBytes) {
  std::mt19937_64 random(1);
  const auto good = encoded(kNote);
  for (std::uint32_t round = 0; round < rounds(20'000); ++round) {
    auto bytes = good;
    for (int changes = 0; changes < 3; ++changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (const auto note = decoded<Note>(bytes)) {
      ASSERT_LE(note->text.size(), bytes.size());
      ASSERT_LE(note->points.size(), bytes.size());
    }
  }
}

struct Large {
  std::array<std::uint8_t, 8184> load = {};
};
struct Many {
  std::vector<Large> all = {};
};
struct Absent {
  std::vector<std::optional<Large>> all = {};
};

template <class T>
std::size_t allocated_by(std::uint32_t count, std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  payload[1] = pubsub::cdr::kPlainCdr2Le;
  const auto length = static_cast<std::uint32_t>(bytes - 8);
  std::memcpy(&payload[4], &length, sizeof length);
  std::memcpy(&payload[8], &count, sizeof count);
  T value;
  static_cast<void>(pubsub::type_support<T>()->decode(payload, &value));
  return value.all.capacity() * sizeof(value.all[0]);
}

TEST(CdrTest, AllocatesNoMoreThanInProportionToThePayload) {
  constexpr std::size_t kBytes = 1 << 20;
  EXPECT_EQ(allocated_by<Many>(kBytes - 12, kBytes), 0U);
  EXPECT_EQ(allocated_by<Many>(129, kBytes), 0U);
  EXPECT_EQ(allocated_by<Many>(128, kBytes), 128 * sizeof(Large));
  EXPECT_EQ(allocated_by<Absent>(kBytes - 12, kBytes), 0U);
  EXPECT_EQ(allocated_by<Absent>(128, 200), 128 * sizeof(std::optional<Large>));
  EXPECT_EQ(allocated_by<Absent>(180, 200), 0U);
}

struct Flags {
  std::uint32_t number = 0;
  bool set = false;
};

TEST(TopicTypeTest, DescribesPlainStructsByTheirLayout) {
  EXPECT_EQ(pubsub::type_support<Spot>()->text, "Spot final plain 16\nx f64 @0\ny f32 @8\n");
  EXPECT_TRUE(pubsub::type_support<Spot>()->plain);
  EXPECT_FALSE(pubsub::type_support<Opt>()->plain);
  EXPECT_EQ(pubsub::type_support<Opt>()->text, "Opt final\na u8\nb? i32\nc? string\nd i32\n");
}

TEST(TopicTypeTest, SeesABoolThatIsNone) {
  const auto type = pubsub::type_support<Flags>();
  std::array<std::byte, sizeof(Flags)> bytes{};
  ASSERT_NE(type->valid, nullptr);
  EXPECT_TRUE(type->valid(bytes.data()));
  bytes[4] = std::byte{2};
  EXPECT_FALSE(type->valid(bytes.data()));
}

}  // namespace
}  // namespace dunlin::test
