#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

/// What the loops and threads at the edge share.

namespace dunlin::threads {

/// Pins the calling thread to that processor. Throws Error.
void pin_to(int core);

/// Whether a thread that looks for work in vain has done so for `spin_us`. It asks after each look:
/// `fruitless` counts them, from 1, and `since_ns` is its own, to keep.
bool spun_enough(Fabric& fabric, std::uint32_t fruitless, bool crowded, std::uint32_t spin_us,
                 std::uint64_t& since_ns) noexcept;

/// A thread that spins gives the processor away after so many looks in vain. Measured on two cores
/// (docs/benchmarks.md): a yield costs 0.3 to 0.7 us, so spinning yields seldom; but two processes
/// that spin on one core without it take turns of 3.8 ms.
inline constexpr std::uint32_t kPollsPerYield = 1024;

/// In a loop that waits for another thread.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm("yield");
#endif
}

}  // namespace dunlin::threads
