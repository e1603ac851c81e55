// A map that several processes have together; started like replicated_counter. Commands: put KEY
// VALUE, erase KEY, get KEY, peek KEY. docs/tutorial.md explains it.

#include <iostream>
#include <map>
#include <sstream>

#include <dunlin/dunlin.hpp>

#include "../typed_lines.hpp"

namespace {

constexpr std::uint32_t kLookMs = 10;          // how often we look at standard input
constexpr std::uint32_t kPatienceMs = 60'000;  // for others to come, and for the group to let us go
constexpr std::uint32_t kSilenceMs = 10'000;   // a member that hangs for so long counts as failed

/// What is replicated: only commands change it, and a command does the same to it everywhere.
struct Map {
  std::map<std::string, std::string> entries = {};

  /// Returns what the command's key has then.
  std::string apply(const std::string& command) {
    std::istringstream words(command);
    std::string verb, key, value;
    std::getline(words >> verb >> key >> std::ws, value);
    if (verb == "put") entries[key] = value;
    if (verb == "erase") entries.erase(key);
    return entries.contains(key) ? entries[key] : "(nothing)";
  }
  std::vector<std::byte> save() const {
    std::ostringstream text;  // the commands that make it
    for (const auto& [key, value] : entries) text << "put " << key << ' ' << value << '\n';
    const std::string commands = text.str();
    const auto bytes = std::as_bytes(std::span(commands));
    return {bytes.begin(), bytes.end()};
  }
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw dunlin::Error("usage: replicated_map GROUP NAME [FOUNDER...]");
  const dunlin::GroupOptions options{
      .subgroups = {{.name = "commands"}},
      .rendezvous = dunlin::make_rendezvous({.group = argv[1], .silence_timeout_ms = kSilenceMs})};
  std::unique_ptr<dunlin::Fabric> fabric;
  if (argc > 3)
    fabric = dunlin::join({.group = argv[1],
                           .names = {argv + 3, argv + argc},
                           .name = argv[2],
                           .timeout_ms = kPatienceMs,
                           .silence_timeout_ms = kSilenceMs});
  const auto group = fabric ? std::make_unique<dunlin::Group>(*fabric, options)
                            : dunlin::Group::join(argv[2], options, kPatienceMs);
  dunlin::Multicast commands(*group, "commands");

  Map map;
  bool has_state = fabric != nullptr;  // a founder begins with nothing
  std::size_t under_way = 0;           // commands of ours that have not come back to us yet
  commands.on_delivery([&](std::span<const dunlin::multicast::Delivery> batch) {
    for (const dunlin::multicast::Delivery& delivery : batch) {
      const std::string& sender = group->view().members[delivery.sender];
      const std::string command = text_of(delivery.message);
      std::cout << sender << ": " << command << ": " << map.apply(command) << std::endl;
      if (delivery.sender == group->view().me) --under_way;
    }
  });
  const auto load = [&](std::span<const std::byte> state) {
    std::istringstream lines(text_of(state));
    for (std::string line; std::getline(lines, line);) map.apply(line);
    has_state = true;
  };
  commands.on_state([&] { return map.save(); }, load);
  group->on_view([](const dunlin::View& view) { std::cout << view << std::endl; });

  TypedLines input;
  const auto nothing_else = [] { return false; };
  while (!input.over() || under_way > 0) {
    dunlin::run_until(*group, nothing_else, kLookMs);
    while (const std::string* line = has_state ? input.front() : nullptr) {
      const bool peek = line->starts_with("peek ");
      if (peek) std::cout << map.apply(*line) << std::endl;
      if (!peek) {
        const auto result = commands.send(std::as_bytes(std::span(*line)));
        if (result != dunlin::multicast::SendResult::sent) break;  // no room: next time
        ++under_way;
      }
      input.pop();
    }
  }
  group->leave();
  const auto gone = [&] { return group->ended(); };
  return dunlin::run_until(*group, gone, kPatienceMs) ? 0 : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
