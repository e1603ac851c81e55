#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

/// What computing shortest paths costs on a simulated CPU.
namespace dunlin::routing {

/// Arcs examined and routers settled, in units of the time in which that CPU reads one entry of the
/// table. The two ratios are measured (docs/routing.md says how), the entry is the profile's.
inline constexpr double kEntriesPerArc = 8;
inline constexpr double kEntriesPerRouter = 12;

[[nodiscard]] inline double compute_cost_ns(const CpuCosts& cpu, std::uint32_t arcs_examined,
                                            std::uint32_t routers) noexcept {
  return cpu.entry_ns * (kEntriesPerArc * arcs_examined + kEntriesPerRouter * routers);
}

}  // namespace dunlin::routing
