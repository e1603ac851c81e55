#include <dunlin/error.hpp>

#include "gateway/options.hpp"

/// Without Cyclone DDS, there is no DDS domain.
namespace dunlin::app::gateway {

void run(const Options&) {
  throw Error(
      "this build has no DDS gateway, because Cyclone DDS was missing when it was built: install "
      "Debian's cyclonedds-dev (or Cyclone DDS 0.10), and build again");
}

}  // namespace dunlin::app::gateway
