// Shapes that move, as in the demonstrations of DDS vendors, drawn in the terminal. Start three
// copies: each is a member, writes a square of its own colour, and draws those of all.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

namespace {

using namespace dunlin::pubsub;

constexpr std::array<const char*, 3> kColors{"RED", "GREEN", "BLUE"};
constexpr int kSteps = 100;
constexpr std::int32_t kWidth = 40;
constexpr std::int32_t kHeight = 10;

struct Shape {
  std::array<char, 16> color;
  std::int32_t x, y, size;
  using TopicKey = KeyOf<&Shape::color>;
};

/// The first letter of each colour where its shape is.
std::string draw(const std::map<std::string, Shape>& shapes) {
  std::vector<std::string> rows(kHeight, std::string(kWidth, '.'));
  for (const auto& [of, shape] : shapes)
    rows.at(static_cast<std::size_t>(shape.y % kHeight))
        .at(static_cast<std::size_t>(shape.x % kWidth)) = of.front();
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

}  // namespace

int main() try {
  auto fabric = dunlin::join({.group = "shapes", .members = kColors.size()});
  const std::string color = kColors.at(fabric->rank());
  dunlin::Group group(*fabric);
  DomainParticipant participant(group);

  // A reader that comes late is given the last place of each shape.
  const TopicQos last_place{.level = Level::volatile_storage, .history = History::keep_last(1)};
  const Topic<Shape> squares(participant, "Square", last_place);
  DataWriter<Shape> writer{Publisher(participant), squares};
  DataReaderQos qos;
  qos << Durability{Durability::Kind::transient_local};
  DataReader<Shape> reader{Subscriber(participant), squares, qos};

  Shape mine{.color = {}, .x = 10 * static_cast<std::int32_t>(fabric->rank()), .y = 1, .size = 30};
  std::copy(color.begin(), color.end(), mine.color.begin());
  std::map<std::string, Shape> shapes;
  int written = 0;
  const bool done = dunlin::run_until(
      participant,
      [&] {
        if (written < kSteps && writer.write(mine) == WriteResult::written) {
          ++written;
          mine.x = (mine.x + 3) % kWidth;
          mine.y = (mine.y + 1) % kHeight;
        }
        for (const auto& sample : reader.take())
          if (sample.info().valid()) shapes[sample.data().color.data()] = sample.data();
        return written == kSteps && shapes.size() == kColors.size();
      },
      30'000);
  std::cout << draw(shapes);
  group.leave();
  dunlin::run_until(
      participant, [&] { return group.ended(); }, 5'000);
  return done ? 0 : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
