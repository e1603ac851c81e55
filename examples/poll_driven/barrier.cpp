// A barrier: nobody starts a round before everybody has finished the one before. Start three of it:
//
//     for i in 1 2 3; do ./barrier & done; wait

#include <functional>
#include <iostream>

#include <dunlin/container.hpp>
#include <dunlin/join.hpp>

namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::uint64_t kRounds = 1'000;

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "barrier", .members = kMembers});
  dunlin::Containers containers(*fabric);
  dunlin::Collectives team(containers, {.name = "team"});
  dunlin::Counter finished(containers, {.name = "finished"});

  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    if (!finished.add(1).outcome().ok() || !team.barrier().outcome().ok())
      throw dunlin::Error(team.describe());
    if (finished.read().outcome().value() < round * kMembers)
      throw dunlin::Error("a barrier has let this member pass before another one came");
  }
  const auto rounds = team.all_reduce(kRounds, std::plus<>()).outcome();
  if (!rounds.ok()) throw dunlin::Error(team.describe());
  std::cout << "node " << fabric->rank() << " passed " << kRounds << " of " << rounds.value()
            << " rounds\n";
  team.barrier().wait();  // nobody leaves before all have come here; how it ends says nothing more
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
