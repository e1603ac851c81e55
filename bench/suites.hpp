#pragma once

namespace CLI {
class App;
}

namespace dunlin::bench {

/// Adds a command for each suite of figures.
void add_suites(CLI::App& program);

}  // namespace dunlin::bench
