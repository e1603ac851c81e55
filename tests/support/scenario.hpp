#pragma once

#include <functional>
#include <string>
#include <vector>

/// Scenarios of a protocol as readable text. A file has blocks of commands, each with the output
/// that it must have ("golden output"), and lines that begin with '#' for the reader:
///
///     # The leader crashes before it begins.
///     members a b c
///     crash a
///     settle
///     ----
///     b suspects a
///     ...
///
/// A block ends at an empty line. With DUNLIN_REWRITE_SCENARIOS in the environment, the files get
/// the output that there is now: read the difference before you commit it.
namespace dunlin::test {

/// The words of a line.
using Command = std::vector<std::string>;
/// Sets a scenario up, and returns the function that executes one command and returns the output,
/// each line with a line feed. That throws std::exception for an unknown command.
using Execute = std::function<std::string(const Command&)>;

/// Runs all scenarios of a folder; gtest failures say in which file and line which output differs.
void run_scenarios(const std::string& folder, const std::function<Execute()>& make);

/// "a b c".
[[nodiscard]] std::string join_words(const std::vector<std::string>& words);

}  // namespace dunlin::test
