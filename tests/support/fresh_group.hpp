#pragma once

#include <atomic>
#include <string>

#include <unistd.h>

namespace dunlin::test {

/// A group name that no other test, in this or another process, uses.
inline std::string fresh_group() {
  static std::atomic<int> count{0};
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

}  // namespace dunlin::test
