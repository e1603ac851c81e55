#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "multicast/place.hpp"
#include "store/limits.hpp"

namespace dunlin::app::resp {

struct ServeOptions {
  cast::PlaceOptions place = {};
  std::string endpoint = kDefaultEndpoint;
  std::string password_file = {};
  std::uint32_t memory_mb = 64;
  std::uint32_t max_memory_mb = 0;  // the part for entries; 0: all
  bool evicts = false;
  std::uint32_t copies = 1;         // how many of each key
  std::uint32_t most_members = 64;  // the most that ever come, founders included
  std::uint32_t cache_mb = 1;
  bool holds_none = false;          // a joiner: has no share of the keys
  bool hands_over = false;          // gives its keys to other members before it leaves
  std::string announced_host = {};  // for cluster clients; empty: that of the endpoint
};

/// A member of the store that serves Redis clients until a signal comes. Throws Error.
void serve(ServeOptions options);

}  // namespace dunlin::app::resp
