#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

/// `ddsperf`, by which Cyclone DDS measures itself: two processes of it, in a DDS domain of their
/// own on the loopback interface.
namespace dunlin::bench {

class DdsPerf {
 public:
  /// What to do to make it available; empty if it is.
  [[nodiscard]] static std::string missing();

  /// Each measurement takes so long, and the processes a second more; at least 2 s.
  explicit DdsPerf(std::chrono::seconds each) : each_(each) {}

  /// Reliable samples of so many bytes (at least 12) a second that the reader was given in the last
  /// second. Throws Error.
  [[nodiscard]] double samples_per_second(std::size_t bytes) const;
  /// Half a round trip of such samples, the median. Throws Error.
  [[nodiscard]] double latency_ns(std::size_t bytes) const;

 private:
  /// What the first one of the two has printed.
  [[nodiscard]] std::string run(const std::vector<std::string>& mode,
                                const std::vector<std::string>& other_mode) const;

  std::chrono::seconds each_;
};

}  // namespace dunlin::bench
