#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/pubsub/topic_type.hpp>

#include "command.hpp"
#include "support/errors.hpp"
#include "topic/sample_json.hpp"
#include "topic/sample_text.hpp"

/// Samples of `dunlin topic` as text, whose structs it knows by their topics' texts only.
namespace dunlin::app::topic {
namespace {

using pubsub::RawSample;

struct Place {
  double x = 0;
  std::array<std::int16_t, 2> cells = {};
};
struct Plane {
  std::array<char, 8> call_sign = {};
  std::uint8_t engines = 0;
  std::array<Place, 2> places = {};
  bool up = false;
  using TopicKey = pubsub::KeyOf<&Plane::call_sign>;
};
struct Report {
  std::string text = {};
  std::vector<Place> places = {};
  std::optional<std::int32_t> page = {};
  std::array<std::array<std::uint16_t, 2>, 2> grid = {};
  std::vector<std::string> names = {};
  static constexpr auto kExtensibility = pubsub::Extensibility::appendable;
};

TEST(TopicTextTest, PrintsAndReadsPlainSamples) {
  const auto type = pubsub::type_support<Plane>();
  const TypeTree tree = parse_type(type->text);
  EXPECT_TRUE(tree.keyed);
  const RawSample sample = read_sample(
      tree, R"({"call_sign": "DLH1", "engines": 4, "places": [{"x": 1.5}, {"cells": [-1, 2]}],
                "up": true})");
  ASSERT_TRUE(sample.plain);
  ASSERT_EQ(sample.payload.size(), sizeof(Plane));
  Plane plane;
  std::memcpy(&plane, sample.payload.data(), sizeof plane);
  EXPECT_EQ(std::string(plane.call_sign.data()), "DLH1");
  EXPECT_EQ(plane.places[0].x, 1.5);
  EXPECT_EQ(plane.places[1].cells, (std::array<std::int16_t, 2>{-1, 2}));
  EXPECT_TRUE(plane.up);
  std::vector<std::byte> key;
  type->append_key(&plane, key);
  EXPECT_EQ(sample.key_hash, pubsub::hash_key(key));
  EXPECT_EQ(print_sample(tree, sample.payload),
            "call_sign: 'DLH1'\nengines: 4\nplaces:\n-\n  x: 1.5\n  cells: [0, 0]\n-\n  x: 0\n"
            "  cells: [-1, 2]\nup: true\n");
}

TEST(TopicTextTest, PrintsAndReadsOtherSamples) {
  const auto type = pubsub::type_support<Report>();
  const TypeTree tree = parse_type(type->text);
  const RawSample sample =
      read_sample(tree, R"({"text": "hello", "places": [{"x": 2}], "page": 7, "grid": [[1, 2], [3]],
                "names": ["a", "bc"]})");
  ASSERT_FALSE(sample.plain);
  Report report;
  ASSERT_TRUE(type->decode(sample.payload, &report));
  EXPECT_EQ(report.text, "hello");
  ASSERT_EQ(report.places.size(), 1U);
  EXPECT_EQ(report.places[0].x, 2);
  EXPECT_EQ(report.page, 7);
  EXPECT_EQ(report.grid[0][1], 2);
  EXPECT_EQ(report.grid[1][0], 3);
  EXPECT_EQ(report.names, (std::vector<std::string>{"a", "bc"}));
  std::vector<std::byte> encoded;
  type->encode(&report, encoded);
  EXPECT_EQ(encoded, sample.payload);
  EXPECT_NE(print_sample(tree, encoded).find("page: 7\n"), std::string::npos);
}

TEST(TopicTextTest, RefusesWhatIsNoSampleOfTheType) {
  const TypeTree tree = parse_type(pubsub::type_support<Plane>()->text);
  EXPECT_THROW((void)read_sample(tree, "{"), BadInput);
  EXPECT_THROW((void)read_sample(tree, R"({"wings": 2})"), BadInput);
  EXPECT_THROW((void)read_sample(tree, R"({"engines": 300})"), BadInput);
  EXPECT_THROW((void)read_sample(tree, R"({"engines": "two"})"), BadInput);
  EXPECT_THROW((void)read_sample(tree, R"({"call_sign": "far too long"})"), BadInput);
  EXPECT_THROW((void)print_sample(tree, std::vector<std::byte>(3)), Error);
}

TEST(TopicTextTest, RefusesATypeWhoseMembersDoNotFitIt) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"T final plain 8\nx u64 @4096\n", "take 4104 bytes, and it has 8"},
      {"T final plain 8\nx u64 @4\n", "member 'x' cannot lie at 4"},
      {"T final plain 8\nx u8 @8\n", "take 9 bytes, and it has 8"},
      {"T final plain 8\nx char*9 @0\n", "take 9 bytes, and it has 8"},
      {"T final plain 8\nx char*64 @18446744073709551552\n", "18446744073709551552 is more than"},
      {"T final plain 8\nx char*18446744073709551615 @1\n", "18446744073709551615 is more than"},
      {"T final plain 8\nx[3] u32 @0\n", "take 12 bytes, and it has 8"},
      {"T final plain 8\nx[1000000000][1000000000][16] u32 @0\n", "member 'x' takes more"},
      {"T final plain 8\nx[65536][65536][65536][65536] u8 @0\n", "member 'x' takes more"},
      {"T final plain 8\np P final @0\np.x u32 @8\n", "take 12 bytes, and it has 8"},
      {"T final plain 8\np[2] P final @0\np[2].x u64 @0\n", "take 16 bytes, and it has 8"},
      {"T final plain 4\nx u64 @0\n", "take 8 bytes, and it has 4"},
      {"T final plain 9999999999\nx u64 @0\n", "9999999999 is more than"},
      {"T final plain 32\nx[] u64 @0\n", "'x' of a plain type is a sequence"},
      {"T final plain 32\nx? u64 @0\n", "'x' of a plain type is a sequence or optional"},
      {"T final plain 32\nx string @0\n", "'x' of a plain type is a string"},
      {"T final\nx[65536][65536][65536][65536] i32\n", "member 'x' takes more"},
      {"T final\np[65536] P final\np[65536].x[65536] i32\n", "member 'p' takes more"},
      {"T final\nx" + std::string(33, '?') + " i32\n", "more than 32 dimensions"},
      {"T final\nx char*0\n", "member 'x' has no characters"},
      {"T final\np string final\np.x i32\n", "the name of another type"},
      {"T final\np P final\n", "struct 'P' has no members"},
      {"T final\n", "struct 'T' has no members"}};
  for (const auto& one : refused) {
    const std::string told = test::what_is_thrown_by([&] { (void)parse_type(one.first); });
    EXPECT_TRUE(test::contains(told, one.second)) << one.first << told;
  }
  EXPECT_EQ(parse_type("T final plain 8\nx u64 @0\n").root.size, 8U);
  // Large ones that can be.
  EXPECT_EQ(parse_type("T final plain 805306368\np[268435456] P final @0\np[268435456].r u8 @0\n"
                       "p[268435456].g u8 @1\np[268435456].b u8 @2\n")
                .root.size,
            805'306'368U);
  EXPECT_FALSE(parse_type("T final\ns string\nx[1000000000] u8\n").plain);
}

TEST(TopicTextTest, KnowsAKeyFromAMemberOfThatName) {
  EXPECT_FALSE(parse_type("T final plain 8\nkey u32 @0\nx u32 @4\n").keyed);
  EXPECT_FALSE(parse_type("T final\nx key final\nx.key i32\n").keyed);
  EXPECT_TRUE(parse_type("T final plain 4\nkey u32 @0 key\n").keyed);
}

TEST(TopicTextTest, ShowsNoTypeThatItDoesNotKnow) {
  const std::vector<std::byte> payload{std::byte{0}, std::byte{7}, std::byte{0}, std::byte{0},
                                       std::byte{1}};
  const std::string told = test::what_is_thrown_by(
      [&] { (void)print_sample(parse_type("T final\nx i128\n"), payload); });
  EXPECT_TRUE(test::contains(told, "has a 'i128', which this release cannot show")) << told;
}

}  // namespace
}  // namespace dunlin::app::topic
