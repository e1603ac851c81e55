#pragma once

#include <cmath>
#include <cstdint>

/// Virtual time: whole picoseconds since the world began. (A byte on a 100 Gb/s wire takes 80
/// ticks, so sums of many small costs stay exact; 64 bits last for seven months.)
namespace dunlin::sim {

using Ticks = std::uint64_t;

inline constexpr Ticks kTicksPerNs = 1000;
inline constexpr Ticks kNever = UINT64_MAX;

[[nodiscard]] inline Ticks rounded(double value) noexcept {
  return value <= 0 ? 0 : static_cast<Ticks>(std::llround(value));
}

[[nodiscard]] inline Ticks ticks(double ns) noexcept {
  return rounded(ns * static_cast<double>(kTicksPerNs));
}

[[nodiscard]] inline Ticks scaled(Ticks t, double factor) noexcept {
  return rounded(static_cast<double>(t) * factor);
}

/// Converts a moment or span in whole nanoseconds; "for ever" stays for ever.
[[nodiscard]] constexpr Ticks ticks_of_ns(std::uint64_t ns) noexcept {
  return ns >= kNever / kTicksPerNs ? kNever : ns * kTicksPerNs;
}

[[nodiscard]] constexpr std::uint64_t to_ns(Ticks t) noexcept { return t / kTicksPerNs; }

[[nodiscard]] constexpr Ticks saturating_add(Ticks a, Ticks b) noexcept {
  return a > kNever - b ? kNever : a + b;
}

}  // namespace dunlin::sim
