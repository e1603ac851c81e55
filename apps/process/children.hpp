#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "process/child.hpp"

namespace dunlin::process {

/// Children that work together. The destructor ends all that are still running.
class Children {
 public:
  /// A child, counted in the order of start(), and how it ended.
  struct Ended {
    std::size_t index;
    Status status;
  };

  Children() = default;
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Forks one more; see Child.
  void start(const std::function<int()>& life) { all_.emplace_back(life); }
  /// How many ran at the last call of ended().
  [[nodiscard]] std::size_t running() const noexcept;
  /// Those that have ended since the last call. Does not wait.
  [[nodiscard]] std::vector<Ended> ended();
  /// Sleeps until a child has ended, a descriptor of `others` is readable (-1 never is), a signal
  /// was handled, or the time is up; only then it returns false.
  bool await(const std::vector<int>& others,
             std::optional<std::chrono::milliseconds> timeout = std::nullopt);

 private:
  std::vector<Child> all_;
};

}  // namespace dunlin::process
