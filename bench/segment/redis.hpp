#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "bench/harness/clock.hpp"
#include "fabric/system.hpp"
#include "process/child.hpp"

/// A Redis server of our own, and a client of it over a UNIX socket: the neighbour beside which
/// segments are measured, where it is installed.
namespace dunlin::bench {

class Redis {
 public:
  /// What to do to make it available; empty if it is.
  [[nodiscard]] static std::string missing();

  /// Starts a server that keeps nothing on disk, in a directory that goes with it. Throws Error.
  Redis();
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;
  ~Redis();

  struct Times {
    double get_ns = 0;
    double set_ns = 0;
  };
  /// For a value of so many bytes; medians.
  [[nodiscard]] Times measure(const Batches& plan, std::size_t bytes);

 private:
  void connect_to(const std::filesystem::path& socket);
  /// Sends a request, and reads so many bytes of answer.
  void exchange(const std::string& request, std::size_t answer_bytes);

  std::filesystem::path directory_;
  process::Child server_;
  Descriptor socket_;
  std::string answer_;
};

}  // namespace dunlin::bench
