#pragma once

#include <string_view>

/// The time that computing shortest paths takes on a simulated CPU.
namespace dunlin::routing {

/// A computation takes so long for every arc that it examines (reading its cost included).
struct ComputeModel {
  double ns_per_arc = 0;
};

/// Measured on shared memory, with networks of 11 to 64 routers (docs/routing.md).
inline constexpr double kMeasuredNsPerArc = 20;
/// A core of the Opterons of 2015, against the one that was measured: an assumption.
inline constexpr double kSlownessOf2015 = 4;

[[nodiscard]] inline ComputeModel compute_model(std::string_view profile) noexcept {
  if (profile == "ideal") return {0};
  const bool old = profile == "ib40-2015" || profile == "ib1-2015" || profile == "two-racks";
  return {kMeasuredNsPerArc * (old ? kSlownessOf2015 : 1)};
}

}  // namespace dunlin::routing
