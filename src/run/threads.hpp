#pragma once

/// What the loops and threads at the edge share.

namespace dunlin::threads {

/// Pins the calling thread to that processor. Throws Error.
void pin_to(int core);

/// In a loop that waits for another thread.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm("yield");
#endif
}

}  // namespace dunlin::threads
