#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multicast/place.hpp"

/// `dunlin topic`: one of its works, as a member of the group.
namespace dunlin::app::topic {

enum class Work : std::uint8_t { list, info, echo, publish, hz, bw };

struct Options {
  Work work = Work::list;
  cast::PlaceOptions place = {};
  std::string topic = {};
  std::string sample = {};
  std::vector<std::string> relays = {};  // echo, publish: no member, but a client of these
  double rate = 1;
  std::optional<std::uint64_t> count = {};
  std::optional<double> seconds = {};
};

/// Returns when it is done, or a signal has come. Throws BadInput and Error.
void run(const Options& options);

}  // namespace dunlin::app::topic
