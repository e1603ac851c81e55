#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/harness/result.hpp"
#include "cluster/fabric_options.hpp"

namespace dunlin::app {
class Watch;
}

/// An Experiment measures one figure, at one or several settings of its parameters.
namespace dunlin::bench {

/// How hard to measure; from the command line.
struct Effort {
  std::uint32_t rounds = 11;
  bool quick = false;  // a fraction of the work: to see that everything runs, not to quote
  std::chrono::milliseconds timeout{120'000};
  std::uint32_t members = 2;        // of a group, where a figure can have more
  std::string profile = {};         // of simulated networks; empty: each figure's own
  app::FabricOptions network = {};  // of real ones: provider, device, address, hosts
  app::Watch* watch = nullptr;      // of the other hosts, once all have come

  /// The full amount of something, or a hundredth of it.
  [[nodiscard]] std::uint32_t scaled(std::uint32_t full) const noexcept {
    return quick ? std::max(full / 100, 1U) : full;
  }

  /// A round of so many batches; a quick one has a hundredth of them, a tenth as long each. Where
  /// other work shares the cores, every step of a ping-pong may cost both sides a time slice.
  [[nodiscard]] Batches plan(std::uint32_t batches, std::uint32_t per_batch) const noexcept {
    return {.batches = scaled(batches),
            .per_batch = quick ? std::max(per_batch / 10, 1U) : per_batch};
  }
};

struct Experiment {
  std::string name;            // "detection"; several results share it
  std::string title;           // a line for people: what is measured, and how
  std::string fabric;          // "shm", "tcp", "ofi", "verbs", "sim" or "none"
  std::string x = {};          // the parameter to plot along; empty: bars
  bool between_hosts = false;  // can be
  bool only_by_name = false;   // measured if it is named, and not among all: it takes much
  std::function<std::vector<Result>(const Effort&)> run;
};

struct Finding {
  const Experiment* experiment;
  std::vector<Result> results;
};

}  // namespace dunlin::bench
