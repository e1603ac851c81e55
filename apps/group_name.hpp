#pragma once

#include <string>
#include <string_view>

namespace dunlin::app {

/// A group name that no other run has, also none in another PID namespace that shares our network
/// namespace, where groups meet: "routing-4711-" and 64 random bits.
[[nodiscard]] std::string fresh_group(std::string_view what);

}  // namespace dunlin::app
