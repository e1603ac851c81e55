#include <cerrno>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "command.hpp"
#include "process/program.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kProgram = "dunlin-bench";

/// Becomes dunlin-bench: the one beside this program, or else the one in PATH.
[[noreturn]] void become_bench(std::vector<std::string> words) {
  const std::string beside = process::folder_of_this_program() / kProgram;
  words.insert(words.begin(), kProgram);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(beside.c_str(), arguments.data());
  if (errno == ENOENT) ::execvp(kProgram, arguments.data());
  if (errno == ENOENT)
    throw Error("there is no " + std::string(kProgram) + ", neither beside this program (" +
                beside +
                ") nor in PATH; `./run build` builds it, and `cmake --install` then "
                "installs it beside dunlin");
  throw Error("cannot start " + std::string(kProgram) + ": " + error_text(errno));
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "Measure against the raw limit, in the same processes, in turns (dunlin-bench)");
  command->set_help_flag();  // --help, too, is for dunlin-bench
  command->prefix_command();
  command->callback([command] { become_bench(command->remaining()); });
}

}  // namespace dunlin::app
