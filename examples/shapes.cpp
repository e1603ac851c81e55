// Shapes that move, as in the demonstrations of DDS vendors, drawn in the terminal. Start three
// copies: each is a member, writes a square of its own colour, and draws those of all.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include <dunlin/node.hpp>

namespace {

using namespace dunlin::pubsub;

constexpr std::array<const char*, 3> kColors{"RED", "GREEN", "BLUE"};
constexpr std::int32_t kWidth = 40, kHeight = 10;

struct Shape {
  std::array<char, 16> color;
  std::int32_t x, y, size;
  using TopicKey = KeyOf<&Shape::color>;
};

}  // namespace

int main() try {
  dunlin::Node node = dunlin::Node::join({.group = "shapes", .members = kColors.size()});
  // A reader that comes late is given the last place of each shape.
  dunlin::TopicSetup<Shape> setup;
  setup.topic = {.level = Level::volatile_storage, .history = History::keep_last(1)};
  setup.reader << Durability{Durability::Kind::transient_local};
  auto squares = node.topic<Shape>("Square", setup);

  const std::string color = kColors.at(node.rank());
  Shape mine{.color = {}, .x = 10 * static_cast<std::int32_t>(node.rank()), .y = 1, .size = 30};
  std::copy(color.begin(), color.end(), mine.color.begin());
  std::map<std::string, Shape> shapes;
  for (int step = 0; step < 100 || shapes.size() < kColors.size(); ++step) {
    while (squares.write(mine) == WriteResult::no_room) std::this_thread::yield();
    mine.x = (mine.x + 3) % kWidth;
    mine.y = (mine.y + 1) % kHeight;
    for (const Shape& shape : squares.take()) shapes[shape.color.data()] = shape;
  }

  std::string picture;
  for (int row = 0; row < kHeight; ++row) picture += std::string(kWidth, '.') + '\n';
  for (const auto& [name, shape] : shapes)  // the first letter of each colour where its shape is
    picture.at(static_cast<std::size_t>(shape.y) * (kWidth + 1) +
               static_cast<std::size_t>(shape.x)) = name.front();
  std::cout << picture;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
