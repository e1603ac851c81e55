// The C++ member of the groups in python/tests: it has the structs of which the tests have
// dataclasses. It is told what to do by lines, and answers by lines.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dunlin/dunlin.hpp>

struct Shape {
  std::array<char, 16> color;
  std::int32_t x;
  std::int32_t y;
  double size;
  std::array<float, 3> rgb;
  bool filled;
  using TopicKey = dunlin::pubsub::KeyOf<&Shape::color>;
};

namespace robot {
enum class Gear : std::int32_t { park, drive };
struct Point {
  std::int16_t x;
  std::uint64_t y;
};
struct Note {
  std::string text;
  std::vector<std::uint8_t> data;
  std::optional<std::int64_t> number;
  std::vector<Point> points;
  std::vector<double> samples;
  std::array<std::array<std::array<char, 5>, 2>, 2> names;
  std::array<Point, 2> corners;
  std::vector<std::string> words;
  std::array<std::vector<std::uint16_t>, 2> lists;
  std::optional<Point> origin;
  std::vector<std::array<std::int8_t, 3>> triples;
  Gear gear;
  std::array<bool, 3> flags;
  static constexpr auto kExtensibility = dunlin::pubsub::Extensibility::appendable;
};
}  // namespace robot

struct Row {
  std::int32_t step;
  double load;
  std::array<float, 4> parts;
  std::array<char, 64> note;
  std::array<char, 3> tag;
  bool ready;
  std::uint64_t big;
};

namespace {

constexpr std::uint32_t kTimeoutMs = 60'000;

void write(auto& topic, const auto& sample) {
  while (topic.write(sample) == dunlin::pubsub::WriteResult::no_room) std::this_thread::yield();
}
auto take_one(auto& topic) {
  for (;;) {
    auto samples = topic.take();
    if (!samples.empty()) return samples.front();
    std::this_thread::yield();
  }
}

std::string text_of(const auto& characters) {
  return {characters.begin(), std::ranges::find(characters, '\0')};
}

/// Sends each sample back, changed or not.
int echo(dunlin::Node& node) {
  auto shapes_in = node.topic<Shape>("shapes/in", {.writes = false});
  auto shapes_out = node.topic<Shape>("shapes/out", {.reads = false});
  auto notes_in = node.topic<robot::Note>("notes/in", {.writes = false});
  auto notes_out = node.topic<robot::Note>("notes/out", {.reads = false});
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    if (line == "shape") {
      Shape shape = take_one(shapes_in);
      ++shape.x;
      write(shapes_out, shape);
    } else if (line == "note") {
      write(notes_out, take_one(notes_in));
    }
  }
  return 0;
}

/// Publishes its row, and prints the other one once its step is 1.
int share_table(dunlin::Node& node) {
  auto table = node.table<Row>("rows");
  table.update([](Row& mine) {
    mine = {.step = 1,
            .load = 0.5,
            .parts = {1, 2, 3, 4},
            .note = {},
            .tag = {'c', 'p', 'p'},
            .ready = true,
            .big = UINT64_MAX};
    std::string("a text of sixty bytes, which takes two lines of a stamped cell")
        .copy(mine.note.data(), mine.note.size());
  });
  table.until(dunlin::all(&Row::step) >= 1).get();
  const auto rows = table.snapshot();
  const Row row = rows[1 - rows.my_row()];
  std::cout << row.step << ' ' << row.load << ' ' << row.parts[3] << ' ' << text_of(row.note) << ' '
            << text_of(row.tag) << ' ' << row.ready << ' ' << row.big << std::endl;
  table.until(dunlin::any(&Row::step) >= 2).get();
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "types") {
    std::cout << dunlin::pubsub::type_support<Shape>()->text
              << dunlin::pubsub::type_support<robot::Note>()->text
              << dunlin::layout_of<Row>().text();
    return 0;
  }
  dunlin::NodeOptions options{.group = arguments[2], .members = 2};
  options.network.timeout_ms = kTimeoutMs;
  options.network.silence_timeout_ms = 0;
  dunlin::Node node = dunlin::Node::join(options);
  return what == "echo" ? echo(node) : share_table(node);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
