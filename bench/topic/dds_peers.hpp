#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// Other people's DDS: each is measured by two processes, in a DDS domain of their own on this
/// host.
namespace dunlin::bench {

struct DdsPeer {
  std::string name;
  std::string missing = {};  // what to do to make it available; empty if it is
  /// Reliable samples of so many bytes (at least 12) a second that the reader was given in the last
  /// second. Throws Error.
  std::function<double(std::size_t bytes)> samples_per_second = nullptr;
  /// Half a round trip of such samples, the median. Throws Error.
  std::function<double(std::size_t bytes)> latency_ns = nullptr;
};

/// Cyclone DDS, by its `ddsperf`, and Fast DDS, by `dunlin-fast-dds`. Each measurement takes so
/// long, at least 2 s, and the processes a second more.
[[nodiscard]] std::vector<DdsPeer> all_dds_peers(std::chrono::seconds each);

}  // namespace dunlin::bench
