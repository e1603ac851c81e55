#pragma once

#include <chrono>
#include <string>
#include <vector>

/// Running another program to its end.
namespace dunlin::bench {

struct Outcome {
  int status = 0;      // exit status; 128 + signal if it was ended by one
  std::string output;  // standard output and standard error
};

/// Run a program found in PATH, with `input` as its standard input. Throws Error if it cannot be
/// started or takes too long; it and its children are ended then.
[[nodiscard]] Outcome run_program(const std::vector<std::string>& command, const std::string& input,
                                  std::chrono::milliseconds timeout);

/// Whether there is a program of this name in PATH.
[[nodiscard]] bool program_exists(const std::string& name);

}  // namespace dunlin::bench
