#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <unistd.h>

#include <dunlin/dunlin.hpp>

/// Performs one operation of the data path so many times, for count.sh, which counts instructions.
/// Both members are in this thread: nothing waits, so the count depends on the code alone.
namespace {

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<double> load;
};

struct Pair {
  std::unique_ptr<dunlin::Fabric> first;
  std::unique_ptr<dunlin::Fabric> second;
};

Pair join_both() {
  const std::string group = "instructions-" + std::to_string(getpid());
  auto one = dunlin::shm::begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
  auto other = dunlin::shm::begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
  Pair pair;
  while (!pair.first || !pair.second) {
    if (!pair.first) pair.first = one->poll();
    if (!pair.second) pair.second = other->poll();
  }
  return pair;
}

}  // namespace

int main(int argc, char** argv) {
  const Pair pair = join_both();
  dunlin::Fabric& fabric = *pair.first;
  const dunlin::Rank peer = pair.second->rank();
  const dunlin::Region box = fabric.allocate({.name = "box", .bytes = 4096});
  const dunlin::Region theirs = pair.second->allocate({.name = "box", .bytes = 4096});
  fabric.announce(box);
  pair.second->announce(theirs);
  dunlin::Table<Row> table(fabric);
  dunlin::Table<Row> other(*pair.second);
  while (!fabric.connected(peer, box.id()) || !table.connected() || !other.connected()) {
    table.poll();
    other.poll();
  }

  const std::uint64_t word = 1;
  const dunlin::Operation batch[] = {dunlin::write(peer, box.id(), 0, &word, 8),
                                     dunlin::put(peer, box.id(), 64, &word, 8),
                                     dunlin::write(peer, box.id(), 128, &word, 8),
                                     dunlin::fetch_add(peer, box.id(), 192, 1, nullptr)};
  std::uint64_t well = 0;
  const std::map<std::string, std::function<void()>> operations{
      {"nothing", [] {}},
      {"post", [&] { well += fabric.post(batch[0]).accepted; }},
      {"post-4", [&] { well += fabric.post(batch).accepted; }},
      {"poll", [&] { well += fabric.poll(); }},
      {"table-poll", [&] { well += table.poll(); }},
      {"push", [&] { well += table.push(&Row::step).sent; }}};
  const auto operation = argc == 3 ? operations.find(argv[1]) : operations.end();
  if (operation == operations.end()) {
    std::cerr << "usage: count_instructions OPERATION TIMES, where OPERATION is one of";
    for (const auto& [name, action] : operations) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  for (std::int64_t times = std::atoll(argv[2]); times > 0; --times) operation->second();
  std::cout << well << '\n';
}
