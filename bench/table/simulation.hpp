#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/table.hpp>

#include "bench/harness/experiment.hpp"

/// The common part of the simulated figures: a network, seeds for rounds, and published values.
namespace dunlin::bench {

/// The figure's own network, unless another was asked for; then nothing is published about it.
struct Network {
  const sim::Profile& profile;
  bool as_published;

  Network(const Effort& effort, std::string_view own)
      : profile(sim::profile(effort.profile.empty() ? own : effort.profile)),
        as_published(profile.name == own) {}
  [[nodiscard]] std::optional<double> published(double value) const {
    return as_published ? std::optional(value) : std::nullopt;
  }
};

/// One round a seed.
template <class Measure>
std::vector<double> over_seeds(const Effort& effort, Measure&& measure) {
  std::vector<double> series;
  for (std::uint64_t seed = 1; seed <= effort.rounds; ++seed) series.push_back(measure(seed));
  return series;
}

inline constexpr const char* kPublishedNetwork = "ib40-2015";

inline constexpr std::array kBothWays{Refresh::writes, Refresh::reads};
[[nodiscard]] inline std::string refresh_name(Refresh refresh) {
  return refresh == Refresh::writes ? "writes" : "reads";
}

}  // namespace dunlin::bench
