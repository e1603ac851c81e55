#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <dunlin/fabric/sim.hpp>

/// What a seed decides in an audit over random histories: numbers, a network, and what befalls the
/// members.
namespace dunlin::test {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

 private:
  std::mt19937_64 random_;
};

/// A network that is as unfavourable as the rules allow, in some ways.
sim::Profile unfavourable_network(Draws& draws);

/// Lets one thing befall the group: a member crashes or hangs, and is `gone` then; or it pauses, is
/// slow, or is cut off from another in one direction or both. `before_crash(rank)` may let the
/// world run on to the moment at which a crash hurts most.
void trouble(sim::World& world, Draws& draws, std::vector<bool>& gone,
             const std::function<void(Rank)>& before_crash = {});

/// Mends what was cut between members.
void heal_all(sim::World& world, std::uint32_t members);

}  // namespace dunlin::test
