#include "support/troubles.hpp"

namespace dunlin::test {

sim::Profile unfavourable_network(Draws& draws) {
  sim::Profile network = sim::profile("ib100");
  if (draws.below(2) == 0) {
    network.jitter = 0.9;
    network.ordered_placement = false;
  }
  network.native_atomics = draws.below(2) == 0;
  if (draws.below(2) == 0)  // members die in the middle of writes
    network.bandwidth_bytes_per_ns = 0.2;
  if (draws.below(3) == 0) network.queue_slots = 2;
  if (draws.below(2) == 0) network.max_inline_bytes = 64;
  return network;
}

void trouble(sim::World& world, Draws& draws, std::vector<bool>& gone,
             const std::function<void(Rank)>& before_crash) {
  const auto count = static_cast<std::uint32_t>(gone.size());
  const Rank rank = draws.below(count), other = draws.below(count);
  switch (draws.below(6)) {
    case 0:
      gone[rank] = true;
      if (before_crash) before_crash(rank);
      return world.crash(rank);
    case 1:
      gone[rank] = true;
      return world.hang(rank);
    case 2:
      return world.pause(rank, draws.below(3'000'000));
    case 3:
      if (rank != other) world.cut(rank, other);
      return;
    case 4:
      if (rank == other) return;
      world.cut(rank, other);
      return world.cut(other, rank);
    default:
      return world.slow(rank, 1 + draws.below(50));
  }
}

void heal_all(sim::World& world, std::uint32_t members) {
  for (Rank from = 0; from < members; ++from)
    for (Rank to = 0; to < members; ++to) world.heal(from, to);
}

}  // namespace dunlin::test
