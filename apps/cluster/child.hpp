#pragma once

#include <string>

#include <sys/types.h>

namespace dunlin::app {

/// Why fork() has just failed, and which limit to raise.
[[nodiscard]] std::string fork_fault();

/// The first that a forked child does: it ends with its parent, which alone decides what becomes of
/// a Ctrl-C that both hear.
void belong_to(pid_t parent) noexcept;

}  // namespace dunlin::app
