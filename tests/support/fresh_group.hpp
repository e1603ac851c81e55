#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <unistd.h>

namespace dunlin::test {

inline std::atomic<int> fresh_group_count{0};

/// A group name that no other test, in this or another process, uses.
inline std::string fresh_group() {
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(fresh_group_count++);
}

/// The names that fresh_group() has given last in this process.
inline std::vector<std::string> fresh_groups(int most) {
  std::vector<std::string> groups;
  for (int i = std::max(0, fresh_group_count - most); i < fresh_group_count; ++i)
    groups.push_back("test-" + std::to_string(getpid()) + "-" + std::to_string(i));
  return groups;
}

}  // namespace dunlin::test
