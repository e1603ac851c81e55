#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/fabric/bare.hpp"
#include "bench/harness/experiment.hpp"

/// The fabrics between real processes that are measured: the one place where a backend comes in.
namespace dunlin::bench {

/// What a backend should reach; none: measured only (asleep: not at all).
struct FabricGoals {
  std::optional<double> detection_ratio = {};  // 8 bytes, put and signalled, or detected in a row
  std::optional<double> puts_per_s = {};       // of 8 bytes, in batches
  std::optional<double> get_ratio = {};        // of 8 bytes
  std::optional<double> stream_ratio = {};     // puts of 10 KB, of one item a send,
  std::optional<double> filled_ratio = {};     // and of sends that are filled
  std::optional<double> sleeping_ratio = {};   // both sides sleep until they are written to
  // Multicast: beside bare connections with 64 KB a send, and a bare one-way latency.
  std::optional<double> cast_100_ratio = {};
  std::optional<double> cast_10k_ratio = {};
  std::optional<double> own_delivery_ratio = {};
};

struct RealNetwork {
  std::string name;  // as --fabric has it
  /// What the same processes can do without Dunlin.
  std::unique_ptr<Bare> (*bare)(Member& me, const std::string& address);
  std::string bare_name;
  bool passive_target;            // Properties has it, too, but only when it is joined
  std::uint32_t trips_per_batch;  // round trips that take some ten microseconds
  bool both_ways = false;         // `bare` can stream in both directions at once
  FabricGoals goals = {};

  /// How many of an operation that takes so many round trips make a batch.
  [[nodiscard]] std::uint32_t trips(std::uint32_t of_one) const noexcept {
    return of_one == 1 ? trips_per_batch : std::max(trips_per_batch / of_one, 2U);
  }
  [[nodiscard]] bool is_shm() const noexcept { return name == "shm"; }
};

/// Those that this build and this machine have. Asks no library that would make devices unusable
/// for the children of this process.
[[nodiscard]] const std::vector<RealNetwork>& real_networks();
/// One of them.
[[nodiscard]] const RealNetwork& real_network(std::string_view name);

/// A goal that only shared memory has: of the ratio.
[[nodiscard]] inline std::optional<Goal> goal_on_shm(const RealNetwork& network, double bound) {
  return network.is_shm() ? std::optional(Goal{.bound = bound}) : std::nullopt;
}

/// The `run` of an experiment on one of them. `measure(network, effort)` returns a result, or
/// several.
template <class Measure>
[[nodiscard]] auto on_network(const RealNetwork& network, Measure measure) {
  return [&network, measure = std::move(measure)](const Effort& effort) {
    return joined<Result>(measure(network, effort));
  };
}

/// On each of them what each of `figures`, called with the network, returns: an experiment, or
/// several.
template <class... Figures>
[[nodiscard]] std::vector<Experiment> on_each_network(Figures... figures) {
  std::vector<Experiment> all;
  for (const RealNetwork& network : real_networks()) (append(all, figures(network)), ...);
  return all;
}

}  // namespace dunlin::bench
