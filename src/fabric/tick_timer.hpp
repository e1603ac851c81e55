#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/system.hpp"

/// An interval measured by the processor's own counter, which is read in less than half the time
/// that the system's clock takes.
namespace dunlin {

[[nodiscard]] inline std::uint64_t read_ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return read_clock_ns(CLOCK_MONOTONIC);
#endif
}

/// Says when an interval is over by a counter whose rate it learns from the clock. Pure: the caller
/// reads both.
///
///     if (timer.over(read_ticks())) timer.restart(read_ticks(), now_ns);
class TickTimer {
 public:
  TickTimer(std::uint64_t interval_ns, std::uint64_t now_ns) noexcept
      : interval_ns_(interval_ns), since_ns_(now_ns) {}

  /// Whether the interval is over. It also is if the counter has gone back, as those of two
  /// processors may differ.
  [[nodiscard]] bool over(std::uint64_t ticks) const noexcept {
    return expired_ || ticks - since_ticks_ >= interval_ticks_;
  }
  /// Makes the interval over from now on, whatever the counter says.
  void expire() noexcept { expired_ = true; }
  /// Begins a new interval. It grows to at most twice its former length: a thread that was stopped
  /// between reading the counter and the clock has learnt a wrong rate.
  void restart(std::uint64_t ticks, std::uint64_t now_ns) noexcept {
    const auto elapsed_ns = static_cast<double>(std::max<std::uint64_t>(now_ns - since_ns_, 1));
    const double rate = static_cast<double>(ticks - since_ticks_) / elapsed_ns;
    const double learnt = rate * static_cast<double>(interval_ns_);
    const std::uint64_t longest = 2 * interval_ticks_ + 1;
    interval_ticks_ =
        learnt < static_cast<double>(longest) ? static_cast<std::uint64_t>(learnt) : longest;
    since_ticks_ = ticks;
    since_ns_ = now_ns;
    expired_ = false;
  }

 private:
  std::uint64_t interval_ns_;
  std::uint64_t interval_ticks_ = 0;  // over at once until the rate is known
  std::uint64_t since_ticks_ = 0;
  std::uint64_t since_ns_;
  bool expired_ = false;
};

}  // namespace dunlin
