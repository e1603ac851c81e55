#pragma once

#include <cstdint>
#include <string>

#include <dunlin/container/cost.hpp>

#include "cluster/fabric_options.hpp"

namespace CLI {
class App;
}

namespace dunlin::bench {

struct Calibrated {
  ComponentCosts costs;
  std::string measured_on;  // fabric and machine, in one line
};

/// Measures with processes of its own. Throws BadInput, or Error.
[[nodiscard]] Calibrated calibrate(const app::FabricOptions& network, std::uint32_t clients,
                                   std::uint32_t batches);

/// `dunlin calibrate`
void add_calibrate(CLI::App& program);

}  // namespace dunlin::bench
