#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/remote.hpp>

/// Simulated members with something of a layer each (a space, a store, or a client of one), and the
/// programs that use it.
namespace dunlin::bench {

/// Throws Error if nothing of the kind happens for long, in virtual time.
inline void run_until(sim::World& world, const std::function<bool()>& condition) {
  constexpr std::uint64_t kStuckNs = 100'000'000'000;
  if (!world.run_until(condition, kStuckNs))
    throw Error("bench: " + std::to_string(world.size()) + " simulated members on " +
                world.profile().name + " are stuck");
}

template <class Layer>
class SimulatedMembers {
 public:
  /// `make` makes the member's layer, which has a poll(), from its fabric.
  template <class Make>
  SimulatedMembers(const sim::Profile& profile, std::uint32_t members, std::uint64_t seed,
                   const Make& make)
      : world(profile, members, seed) {
    const bool many = members > kManyMembers;
    for (Rank rank = 0; many && rank < members; ++rank)
      world.attach(rank, [&fabric = world.fabric(rank)] { return fabric.poll(); });
    for (Rank rank = 0; rank < members; ++rank) {
      layers.push_back(make(world.fabric(rank)));
      world.detach_all(rank);
      world.attach(rank, [layer = layers.back().get()] { return layer->poll(); });
      if (many) world.run_for(members * kOfAMemberNs);
    }
  }
  /// Nobody is told that so many regions are gone.
  ~SimulatedMembers() { world.end(); }
  SimulatedMembers(const SimulatedMembers&) = delete;
  SimulatedMembers& operator=(const SimulatedMembers&) = delete;

  /// The program of a member, a coroutine, begins on its processor.
  template <class Program>
  void start(Rank rank, Program program) {
    world.on(rank, [this, rank, program] { jobs_.push_back(program(*layers[rank])); });
    ++started_;
  }
  /// Until all programs have ended. Throws Error if one has failed.
  void finish() {
    run_until([this] {
      return jobs_.size() == started_ &&
             std::ranges::all_of(jobs_, [](const remote::Job& job) { return job.finished(); });
    });
    for (const remote::Job& job : jobs_) job.check();
    jobs_.clear();
    started_ = 0;
  }
  void run_until(const std::function<bool()>& condition) { bench::run_until(world, condition); }

  sim::World world;
  std::vector<std::unique_ptr<Layer>> layers;

 private:
  /// More than so many tell each other one after the other of what they have made, as what is under
  /// way takes memory. To announce some regions to a member takes less than so long.
  static constexpr std::uint32_t kManyMembers = 512;
  static constexpr std::uint64_t kOfAMemberNs = 5'000;

  std::deque<remote::Job> jobs_;
  std::size_t started_ = 0;
};

}  // namespace dunlin::bench
