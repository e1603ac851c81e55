#include <CLI/CLI.hpp>

#include "bench/suites.hpp"
#include "command.hpp"

/// dunlin-bench, which `dunlin bench` starts.
int main(int argc, char** argv) {
  CLI::App program;
  dunlin::bench::add_suites(program);
  return static_cast<int>(dunlin::app::run(program, argc, argv));
}
