#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "process/child.hpp"

namespace dunlin::process {

struct Program {
  std::vector<std::string> command;  // the first word is found in PATH
  std::string input = {};            // its standard input
  std::chrono::milliseconds timeout{60'000};
  /// Called in the new process before the program begins; the program does not if this throws.
  std::function<void()> prepare = {};
};

struct Outcome {
  Status status;
  std::string output;            // standard output and standard error
  std::uint64_t peak_bytes = 0;  // see Child
};

/// Runs a program to its end. Throws Error if it cannot be started, or takes too long; then it ends
/// the program and its children.
[[nodiscard]] Outcome run(const Program& program);

/// The folder of the running program, where the programs that belong to it are, too.
[[nodiscard]] std::filesystem::path folder_of_this_program();

/// Whether there is a program of this name in PATH.
[[nodiscard]] bool program_exists(const std::string& name);

}  // namespace dunlin::process
