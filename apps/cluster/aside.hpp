#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dunlin::app {

/// What `ask` returns in a child process: this process, and children that it has later, stay as if
/// it had never been asked. (Whoever has looked at RDMA devices leaves none to its children.)
/// Throws Error if the child fails.
[[nodiscard]] std::vector<std::string> asked_aside(
    const std::function<std::vector<std::string>()>& ask);

}  // namespace dunlin::app
