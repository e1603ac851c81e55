#pragma once

#include <atomic>
#include <cstdint>

namespace dunlin::test {

/// How often this program has asked for memory.
inline std::atomic<std::uint64_t> allocations{0};
inline std::atomic<bool> no_memory_for_frames{false};

/// While there is one, no new frame of a protocol has memory.
struct NoMemory {
  NoMemory() { no_memory_for_frames = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { no_memory_for_frames = false; }
};

}  // namespace dunlin::test
