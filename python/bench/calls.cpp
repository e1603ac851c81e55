#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dunlin/dunlin.hpp>

/// The other member of python/bench/run.py: it has memory, and makes the calls that it is told, so
/// that the same rounds measure a call from C++ beside the one from Python.
///
///     python_calls GROUP POOL_BYTES
///     get KEY COUNT                    put KEY BYTES COUNT
///     get_segment KEY BYTES COUNT      put_segment KEY BYTES COUNT
///
/// Each line is answered by the nanoseconds that so many calls have taken.
namespace {

using Command = std::function<void(std::istream& line)>;

void repeat(std::istream& line, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t count = 0;
  line >> count;
  const auto begun_at = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) call();
  std::cout << std::chrono::nanoseconds(Clock::now() - begun_at).count() << std::endl;
}

int run(const std::string& group, std::size_t pool_bytes) {
  dunlin::NodeOptions options;
  options.group = group;
  options.members = 2;
  options.network.timeout_ms = 60'000;
  options.network.silence_timeout_ms = 0;
  dunlin::Node node = dunlin::Node::join(options);
  dunlin::StoreHandle store = node.store("bench", {.memory_bytes = std::size_t{64} << 20});
  dunlin::SegmentsHandle segments = node.segments("space", {.pool_bytes = pool_bytes});
  auto queue =
      node.queue<std::string>("bench", {.capacity = 1024, .host = node.rank(), .element_bytes = 8});
  std::string key;
  std::vector<std::byte> bytes;
  const auto read_bytes = [&](std::istream& line) {
    std::size_t size = 0;
    line >> key >> size;
    bytes.resize(size);
  };
  const std::map<std::string, Command> commands{
      {"get",
       [&](std::istream& line) {
         line >> key;
         repeat(line, [&] { static_cast<void>(store.get(key).get()); });
       }},
      {"put",
       [&](std::istream& line) {
         read_bytes(line);
         repeat(line, [&] {
           static_cast<void>(store.put(key, std::span<const std::byte>(bytes)).get());
         });
       }},
      {"get_segment",
       [&](std::istream& line) {
         read_bytes(line);
         const dunlin::Key segment{std::stoull(key)};
         repeat(line, [&] { static_cast<void>(segments.get(segment, std::span(bytes)).get()); });
       }},
      {"put_segment", [&](std::istream& line) {
         read_bytes(line);
         const dunlin::Key segment{std::stoull(key)};
         repeat(line, [&] {
           static_cast<void>(segments.put(segment, std::span<const std::byte>(bytes)).get());
         });
       }}};
  std::cout << "there" << std::endl;
  for (std::string name; std::cin >> name;) {
    const auto command = commands.find(name);
    if (command == commands.end()) {
      std::cerr << "python_calls: there is no command '" << name << "'\n";
      return 2;
    }
    command->second(std::cin);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: python_calls GROUP POOL_BYTES\n";
    return 2;
  }
  try {
    return run(argv[1], std::stoull(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << "python_calls: " << error.what() << '\n';
    return 1;
  }
}
