#include "command.hpp"

int main(int argc, char** argv) {
  CLI::App program;
  dunlin::app::add_commands(program);
  return static_cast<int>(dunlin::app::run(program, argc, argv));
}
