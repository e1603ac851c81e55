#pragma once

#include <atomic>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/// A memory barrier on all processors at once: so frequent writers need no barrier, and a member
/// that goes to sleep, which is rare, pays for all (docs/fabric.md, SHM-W1 to SHM-W5).
namespace dunlin::shm {

/// Lets other processes' barriers include this process; false if the kernel has no such barriers,
/// or forbids them.
[[nodiscard]] inline bool register_for_barriers() noexcept {
  return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

inline void barrier_on_all_processors() noexcept {
  syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/// Orders earlier stores before later loads of this thread.
inline void full_fence() noexcept {
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer does not know fences; a locked instruction is a fence, too.
  std::atomic<int> own{0};
  own.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace dunlin::shm
