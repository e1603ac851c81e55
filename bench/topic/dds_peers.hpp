#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/experiment.hpp"
#include "bench/topic/cyclone.hpp"
#include "process/program.hpp"

/// Other people's DDS: each is measured by two processes, in a DDS domain of their own.
namespace dunlin::bench {

struct DdsPeer {
  std::string name;
  std::string missing = {};  // what to do to make it available; empty if it is
  /// One of the two processes: "sub" beside "pub", or "ping" beside "pong". It ends after so long,
  /// at least 2 s. Reliable samples have so many bytes, at least 12.
  std::function<process::Program(const std::string& role, std::size_t bytes, std::chrono::seconds)>
      program = nullptr;
  /// Of what "sub" has printed: samples a second that it was given in the last second. Throws
  /// Error.
  std::function<double(const std::string& output)> samples_per_second = nullptr;
  /// Of what "ping" has printed: half a round trip, the median. Throws Error.
  std::function<double(const std::string& output)> latency_ns = nullptr;
};

/// Cyclone DDS, by its `ddsperf`, on UDP and with its shared memory; and Fast DDS, by
/// `dunlin-fast-dds`, with its shared memory. For two processes on this host.
[[nodiscard]] std::vector<DdsPeer> dds_peers_on_this_host();
/// Both on UDP. The other process gives the same `tag`.
[[nodiscard]] std::vector<DdsPeer> dds_peers_on_udp(const std::string& tag, const DdsAddresses& at);

}  // namespace dunlin::bench
