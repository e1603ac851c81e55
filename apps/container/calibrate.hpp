#pragma once

#include <cstdint>
#include <string>

#include <dunlin/container/cost.hpp>

#include "cluster/fabric_options.hpp"

namespace dunlin::app {

struct Calibrated {
  ComponentCosts costs;
  std::string measured_on;  // fabric and machine, in one line
};

/// Measures with processes of its own. Throws BadInput, or Error.
[[nodiscard]] Calibrated calibrate(const FabricOptions& network, std::uint32_t clients,
                                   std::uint32_t batches);

}  // namespace dunlin::app
