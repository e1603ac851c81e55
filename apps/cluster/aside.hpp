#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dunlin::app {

/// Runs `ask` in a child process and returns its result: this process, and children that it has
/// later, stay as if nothing had been asked. (A process that has looked at RDMA devices leaves none
/// to its children.)
/// Throws Error if the child fails.
[[nodiscard]] std::vector<std::string> asked_aside(
    const std::function<std::vector<std::string>()>& ask);

}  // namespace dunlin::app
