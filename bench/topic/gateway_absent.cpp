#include "bench/topic/experiments.hpp"

/// In place of gateway.cpp in a build without Cyclone DDS.
namespace dunlin::bench {

std::vector<Experiment> gateway_to_dds() { return {}; }

}  // namespace dunlin::bench
