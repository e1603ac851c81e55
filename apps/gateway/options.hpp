#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multicast/place.hpp"

/// `dunlin gateway`: a participant in a DDS domain that carries topics of a group in both
/// directions.
namespace dunlin::app::gateway {

struct Options {
  cast::PlaceOptions place = {};
  std::uint32_t domain = 0;
  std::string network = {};              // empty: "dds" and the domain's number
  std::vector<std::string> topics = {};  // with the policies of the group's topic
  std::string config = {};
};

/// Returns when a signal has come. Throws BadInput and Error. In a build without Cyclone DDS, it
/// throws Error that names the missing package.
void run(const Options& options);

}  // namespace dunlin::app::gateway
