#include <string>

#include <CLI/CLI.hpp>

#include <dunlin/version.hpp>

#include "command.hpp"

namespace dunlin::app {

void add_commands(CLI::App& program) {
  program.description("Dunlin shares state between nodes at the speed of memory.");
  program.set_version_flag("--version", "dunlin " + std::string(version()));
  program.require_subcommand(1);
  add_routing(program);
  add_bench(program);
  add_calibrate(program);
  add_explain(program);
  add_top(program);
  add_doctor(program);
  add_sim(program);
  add_log(program);
  add_multicast(program);
  add_topic(program);
  add_relay(program);
  add_daemon(program);
  add_store(program);
  add_kmers(program);
}

Status run(int argc, const char* const* argv) {
  CLI::App program;
  add_commands(program);
  return run(program, argc, argv);
}

}  // namespace dunlin::app
