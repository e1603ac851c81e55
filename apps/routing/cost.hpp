#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Link costs and path lengths. Both are integers, so that sums are exact and every router, the
/// simulator and the independent check agree to the last digit.
namespace dunlin::routing {

/// Millionths of whatever unit the input has; kNoLink says that the link is lost.
using Cost = std::uint64_t;
inline constexpr Cost kNoLink = UINT64_MAX;
inline constexpr Cost kCostUnit = 1'000'000;
inline constexpr Cost kMaxCost = 100'000'000 * kCostUnit;

inline constexpr std::uint32_t kMaxRouters = 255;  // with the launcher: the members of a shm group
inline constexpr std::uint32_t kMaxRouterLinks = 255;  // leaving one router

/// How long a path is: its cost first, and of paths that cost the same, how many links it has
/// (lowest 8 bits). A longer path is always longer by this measure, also over links that cost
/// nothing, so hop-by-hop forwarding cannot run in circles.
using Length = std::uint64_t;
inline constexpr Length kUnreachable = UINT64_MAX;
inline constexpr unsigned kHopBits = 8;

static_assert(kMaxRouters < (1U << kHopBits), "a path's links must fit into kHopBits");
static_assert(kMaxCost <= (kUnreachable >> kHopBits) / kMaxRouters, "a path's cost must fit");

[[nodiscard]] constexpr Length length_of_link(Cost cost) noexcept {
  return (cost << kHopBits) | 1U;
}
[[nodiscard]] constexpr Cost cost_of(Length length) noexcept {
  return length == kUnreachable ? kNoLink : length >> kHopBits;
}
[[nodiscard]] constexpr unsigned links_of(Length length) noexcept {
  return static_cast<unsigned>(length & ((1U << kHopBits) - 1));
}

/// Throws BadInput that begins with `place` if no link can cost that.
[[nodiscard]] Cost cost_from(double value, std::string_view place);
/// The number written in a script or an XML file; throws BadInput that begins with `place`.
[[nodiscard]] Cost cost_from_text(std::string_view text, std::string_view place);
/// "1146.16"; "lost" for kNoLink.
[[nodiscard]] std::string show_cost(Cost cost);
[[nodiscard]] double to_double(Cost cost) noexcept;

}  // namespace dunlin::routing
