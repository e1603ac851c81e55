#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

/// The benchmark's own clock (the library reads only its fabric's), and the loop around it.
namespace dunlin::bench {

[[nodiscard]] inline double now_ns() noexcept {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Tell the core that we are spinning.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Spin until so much time has passed.
inline void spin_for(double ns) noexcept {
  for (const double end = now_ns() + ns; now_ns() < end;) relax();
}

/// Long enough for a process that has nothing to do to be asleep.
inline constexpr double kUntilAsleepNs = 300'000;

/// A round is cut into batches, and its result is the median batch: another process that takes the
/// core for some milliseconds spoils a few batches, not the round. Or it is another quantile, where
/// it is the rare slow ones that are looked for.
struct Batches {
  std::uint32_t batches = 50;
  std::uint32_t per_batch = 200;
  double quantile = 0.5;
  [[nodiscard]] std::uint64_t total() const noexcept { return std::uint64_t{batches} * per_batch; }
};

/// Nanoseconds that one call of `once` takes: the median over the batches, or the plan's quantile.
template <std::invocable Once>
[[nodiscard]] double batch_ns(const Batches& plan, Once&& once) {
  std::vector<double> times(plan.batches);
  for (double& time : times) {
    const double start = now_ns();
    for (std::uint32_t i = 0; i < plan.per_batch; ++i) once();
    time = now_ns() - start;
  }
  const auto place =
      std::min(plan.batches - 1, static_cast<std::uint32_t>(plan.quantile * plan.batches));
  std::ranges::nth_element(times, times.begin() + place);
  return times[place] / plan.per_batch;
}

}  // namespace dunlin::bench
