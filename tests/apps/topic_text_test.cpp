#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/pubsub/topic_type.hpp>

#include "command.hpp"
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

}  // namespace
}  // namespace dunlin::app::topic
