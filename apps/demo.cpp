#include <CLI/CLI.hpp>

#include "command.hpp"

/// `dunlin` with the command that `./run demo` runs, and no other: it is compiled in a minute.
int main(int argc, char** argv) {
  CLI::App program(
      "The demonstration of Dunlin; ./run build makes the command that has the others.");
  program.require_subcommand(1);
  dunlin::app::add_routing(program);
  return static_cast<int>(dunlin::app::run(program, argc, argv));
}
