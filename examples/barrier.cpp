// A barrier: nobody starts a round before everybody has finished the one before. Start three of it:
//
//     for i in 1 2 3; do ./barrier & done; wait

#include <iostream>

#include <dunlin/node.hpp>

namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::uint64_t kRounds = 1'000;

struct Row {
  std::uint64_t finished;  // rounds
};

}  // namespace

int main() try {
  dunlin::Node node = dunlin::Node::join({.group = "barrier", .members = kMembers});
  auto rounds = node.table<Row>("rounds");

  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    rounds.update([&](Row& mine) { mine.finished = round; }, &Row::finished);
    rounds.until(dunlin::all(&Row::finished) >= round).get();
    for (const Row& row : rounds.snapshot())
      if (row.finished < round || row.finished > round + 1)
        throw dunlin::Error("a barrier has let a member pass before another one came");
  }
  std::cout << "node " << node.rank() << " passed " << kRounds << " rounds\n";
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
