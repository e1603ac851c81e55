#pragma once

#include <atomic>
#include <cstdint>

namespace dunlin::test {

/// How often this program has asked for memory.
inline std::atomic<std::uint64_t> allocations{0};
inline std::atomic<bool> no_memory_for_frames{false};
inline std::atomic<bool> no_memory_for_objects{false};

/// While there is one, no new frame of a protocol has memory.
struct NoMemory {
  NoMemory() { no_memory_for_frames = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { no_memory_for_frames = false; }
};

/// While there is one, nothing that asks by `new` has memory.
struct NoMemoryForObjects {
  NoMemoryForObjects() { no_memory_for_objects = true; }
  NoMemoryForObjects(const NoMemoryForObjects&) = delete;
  NoMemoryForObjects& operator=(const NoMemoryForObjects&) = delete;
  ~NoMemoryForObjects() { no_memory_for_objects = false; }
};

}  // namespace dunlin::test
