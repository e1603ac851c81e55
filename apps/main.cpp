#include "command.hpp"

int main(int argc, char** argv) { return static_cast<int>(dunlin::app::run(argc, argv)); }
