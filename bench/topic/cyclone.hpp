#pragma once

#include <string>

/// How the benchmarks configure Cyclone DDS.
namespace dunlin::bench {

/// Where two processes that measure are.
struct DdsAddresses {
  std::string own = "127.0.0.1";
  std::string other = "127.0.0.1";
};

/// A value of CYCLONEDDS_URI: UDP. No other participants have the tag, and each takes a free port.
[[nodiscard]] std::string cyclone_on_udp(const std::string& tag, const DdsAddresses& at = {});
/// The same with shared memory, for which there must be an iox-roudi.
[[nodiscard]] std::string cyclone_on_shared_memory(const std::string& tag);

}  // namespace dunlin::bench
