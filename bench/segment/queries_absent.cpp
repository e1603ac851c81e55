#include "bench/segment/experiments.hpp"

/// In place of queries.cpp where SQLite was not found at build time (Debian: libsqlite3-dev).
namespace dunlin::bench {

std::vector<Experiment> queries() { return {}; }

}  // namespace dunlin::bench
