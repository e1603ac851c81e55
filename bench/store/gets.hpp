#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

namespace dunlin::bench {

struct GetSetting {
  std::uint32_t pairs = 0;
  std::size_t value_bytes = 0;
  std::size_t cache_bytes = 0;
};

/// Member 0 gets keys that member 1 holds, in batches, with equal probability. Beside it, member 0
/// reads as many bytes from as many random places of a region of member 1's.
void measure_gets(Result& result, const RealNetwork& network, const Effort& effort,
                  const GetSetting& setting);

}  // namespace dunlin::bench
