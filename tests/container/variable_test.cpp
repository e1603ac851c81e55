#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

struct Color {
  std::string name;
  friend bool operator==(const Color&, const Color&) = default;
};

}  // namespace

template <>
struct ContainerTrait<Color> {
  static constexpr bool kIsKey = false;
  static std::span<const std::byte> bytes(const Color& color) {
    return ContainerTrait<std::string>::bytes(color.name);
  }
  static Color value(std::span<const std::byte> bytes) {
    return {ContainerTrait<std::string>::value(bytes)};
  }
};

namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

static_assert(ContainerKey<std::string> && ContainerKey<std::vector<std::uint32_t>>);
static_assert(!ContainerKey<std::vector<double>> && Containable<std::vector<double>>);
static_assert(!ContainerKey<Color> && Containable<Color>);
static_assert(!Containable<std::vector<std::string>> && !Containable<std::vector<bool>>);

/// Of `bytes` bytes, some of them 0.
std::string text_of(std::uint64_t number, std::size_t bytes) {
  std::string text = std::to_string(number);
  text.resize(bytes, '\0');
  if (bytes > 0) text.back() = static_cast<char>(number);
  return text;
}

struct VariableSizes : test::OnContainers {
  template <class Map, class Value>
  Status insert(Map& map, const std::string& key, const Value& value) {
    return cluster->end_of(map.insert(key, value));
  }
};

DUNLIN_RUN_ON(test::container_cases(), VariableSizes);

TEST_P(VariableSizes, AMapOfStringsBehavesAsAStandardMapDoes) {
  start(2);
  expect_a_standard_map<std::string, std::string>(
      make<HashMap<std::string, std::string>>(
          MapOptions{.name = "texts", .slots = 60, .key_bytes = 30, .value_bytes = 100}),
      400, [](std::uint64_t drawn) { return text_of(drawn % 60, drawn % 60 % 31); },
      [](std::uint64_t drawn) { return text_of(drawn % 400, drawn / 400 % 101); });
}

TEST_P(VariableSizes, KeysOrValuesAloneMayVary) {
  start(2);
  const auto counts = make<HashMap<std::string, std::uint64_t>>(
      MapOptions{.name = "counts", .slots = 40, .key_bytes = 14});
  const auto names = make<HashMap<std::uint32_t, std::vector<double>>>(
      MapOptions{.name = "names", .slots = 40, .value_bytes = 80});
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto count = counts[i % 2]->add("word" + std::to_string(i % 4), 1);
    EXPECT_EQ(cluster->end_of(count), Status::ok);
    auto name = names[i % 2]->insert(i, std::vector<double>(i % 11, 0.5));
    EXPECT_EQ(cluster->end_of(name), Status::ok);
  }
  auto count = counts[0]->find("word3");
  EXPECT_EQ(cluster->end_of(count), Status::ok);
  EXPECT_EQ(count.result().value(), 5U);
  auto name = names[1]->find(10);
  EXPECT_EQ(cluster->end_of(name), Status::ok);
  EXPECT_EQ(name.result().value(), std::vector<double>(10, 0.5));
}

TEST_P(VariableSizes, TypesOfThePrograms) {
  start(2);
  const auto colors = make<HashMap<std::string, Color>>(
      MapOptions{.name = "colors", .slots = 10, .key_bytes = 10, .value_bytes = 10});
  EXPECT_EQ(insert(*colors[0], "sky", Color{"blue"}), Status::ok);
  auto found = colors[1]->find("sky");
  EXPECT_EQ(cluster->end_of(found), Status::ok);
  EXPECT_EQ(found.result().value(), Color{"blue"});
}

/// CON-V2 promises what this test checks.
TEST_P(VariableSizes, WhatIsTooLongIsRefusedAndChangesNothing) {
  start(2);
  const auto maps = make<HashMap<std::string, std::string>>(
      MapOptions{.name = "texts", .slots = 10, .key_bytes = 4, .value_bytes = 6});
  EXPECT_EQ(insert(*maps[0], "four", "sixsix"), Status::ok);
  EXPECT_EQ(insert(*maps[0], "fives", "x"), Status::too_long);
  EXPECT_EQ(insert(*maps[0], "key", "seven77"), Status::too_long);
  auto assign = maps[1]->assign("four", "seven77");
  EXPECT_EQ(cluster->end_of(assign), Status::too_long);
  auto find = maps[1]->find("four");
  EXPECT_EQ(cluster->end_of(find), Status::ok);
  EXPECT_EQ(find.result().value(), "sixsix");
  auto other = maps[1]->find("fives");
  EXPECT_EQ(cluster->end_of(other), Status::too_long);
  EXPECT_FALSE(other.result().found());
  const auto queues = make<Queue<std::string>>(
      QueueOptions{.name = "texts2", .capacity = 3, .host = 0, .element_bytes = 5});
  auto push = queues[1]->push("sixsix");
  EXPECT_EQ(cluster->end_of(push), Status::too_long);
  auto pop = queues[0]->pop();
  EXPECT_EQ(cluster->end_of(pop), Status::empty);
}

TEST_P(VariableSizes, AQueueKeepsEachElementsLength) {
  start(2);
  const auto queues = make<Queue<std::string>>(
      QueueOptions{.name = "lines", .capacity = 5, .host = 1, .element_bytes = 90});
  for (std::uint64_t round = 0; round < 30; ++round) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto push = queues[(round + i) % 2]->push(text_of(round, (round * 3 + i) % 91));
      EXPECT_EQ(cluster->end_of(push), Status::ok);
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto pop = queues[i % 2]->pop();
      EXPECT_EQ(cluster->end_of(pop), Status::ok);
      EXPECT_EQ(pop.result().value(), text_of(round, (round * 3 + i) % 91));
    }
  }
}

TEST_P(VariableSizes, ManyElementsAndKeysAtOnce) {
  start(1);  // which waits by itself
  Queue<std::string> queue(
      (*cluster)[0],
      {.name = "lines", .capacity = 20, .host = 0, .style = GetParam().style, .element_bytes = 9});
  const std::vector<std::string> lines{"one", "", "three", "123456789"};
  EXPECT_EQ(queue.push_many(lines), Status::ok);
  EXPECT_EQ(queue.push_many(std::vector<std::string>{"a", "1234567890"}), Status::too_long);
  std::vector<std::string> popped(10);
  std::size_t count = 0;
  EXPECT_EQ(queue.pop_many(popped, count), Status::ok);
  popped.resize(count);
  EXPECT_EQ(popped, lines);
  HashMap<std::string, std::string> map(
      (*cluster)[0],
      {.name = "map", .slots = 100, .style = GetParam().style, .key_bytes = 20, .value_bytes = 9});
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < 50; ++i) pairs.emplace_back("key " + std::to_string(i), std::to_string(i));
  EXPECT_EQ(map.insert_many(pairs), Status::ok);
  EXPECT_EQ(map.find("key 49").outcome().value(), "49");
  EXPECT_EQ(map.home_of("key 49"), 0U);
}

TEST(VariableSizeErrors, NameTheOption) {
  sim::World world(sim::profile("ideal"), 1, 1);
  Containers containers(world.fabric(0));
  using Texts = HashMap<std::string, std::string>;
  const auto thrown_by = [&](const MapOptions& options) {
    return what_is_thrown_by([&] { Texts(containers, options); });
  };
  EXPECT_TRUE(contains(thrown_by({.name = "m", .slots = 1, .value_bytes = 9}),
                       "map 'm': a type of variable size needs the option key_bytes"));
  EXPECT_TRUE(contains(thrown_by({.name = "m", .slots = 1, .key_bytes = 9}), "value_bytes"));
  EXPECT_TRUE(contains(
      thrown_by({.name = "m", .slots = 1, .key_bytes = 9, .value_bytes = kMaxElementBytes}),
      "1 to 4094"));
  EXPECT_TRUE(contains(thrown_by({.name = "m", .slots = 1, .key_bytes = 9, .value_bytes = 4090}),
                       "kMaxElementBytes"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         Queue<int>(containers,
                                    {.name = "q", .capacity = 1, .host = 0, .element_bytes = 4});
                       }),
                       "for types of variable size"));
}

TEST(VariableSizeValues, ALengthThatAPeerHasMadeUpIsCut) {
  std::array<std::byte, 8> place{};
  ASSERT_TRUE(container::pack(std::string("abc"), place.data(), 8));
  EXPECT_EQ(container::unpack<std::string>(place.data(), 8), "abc");
  place[0] = place[1] = std::byte{0xff};
  EXPECT_EQ(container::unpack<std::string>(place.data(), 8), std::string("abc\0\0\0", 6));
  EXPECT_EQ(container::unpack<std::vector<std::uint32_t>>(place.data(), 8).size(), 1U);
}

}  // namespace
}  // namespace dunlin
