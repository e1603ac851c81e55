// A map that several processes have together. Three found its group; more may come, and any may go.
// Commands: put KEY VALUE, erase KEY, peek KEY (docs/tutorial.md): ./replicated_map GROUP
#include <iostream>
#include <map>
#include <sstream>

#include <dunlin/node.hpp>

namespace {

struct Put {
  std::string key, value;
};
struct Erase {
  std::string key;
};
/// What is replicated: only commands change it, and a command does the same to it everywhere.
struct Map {
  std::map<std::string, std::string> entries = {};
  std::string at(const std::string& key) const {
    return entries.contains(key) ? entries.at(key) : "(nothing)";
  }
  std::string apply(const Put& put) { return entries[put.key] = put.value; }
  std::string apply(const Erase& erase) {
    return entries.erase(erase.key) > 0 ? "(erased)" : "(nothing)";
  }
  std::string save() const {
    std::ostringstream text;
    for (const auto& [key, value] : entries) text << key << ' ' << value << '\n';
    return text.str();
  }
  void load(std::string_view saved) {
    std::istringstream text{std::string(saved)};
    for (std::string key, value; text >> key && std::getline(text.ignore(), value);)
      entries[key] = value;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw dunlin::Error("usage: replicated_map GROUP");
  auto node = dunlin::Node::join({.group = argv[1], .members = 3});
  auto map = node.replicated<Map, Put, Erase>("map");
  map.wait_until_joined();
  std::cout << node.view() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, key, value;
    std::getline(words >> verb >> key >> std::ws, value);
    if (verb == "put") std::cout << map.apply(Put{key, value}).get() << std::endl;
    if (verb == "erase") std::cout << map.apply(Erase{key}).get() << std::endl;
    const auto peek = [&](const Map& here) { return here.at(key); };
    if (verb == "peek") std::cout << map.look(peek) << std::endl;
  }
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
