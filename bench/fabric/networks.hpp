#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "bench/fabric/bare.hpp"

/// The fabrics between real processes that are measured: the one place where a backend comes in.
namespace dunlin::bench {

/// What a backend should reach; none: measured only (asleep: not at all).
struct FabricGoals {
  std::optional<double> detection_ratio = {};  // 8 bytes, put and signalled
  std::optional<double> puts_per_s = {};       // of 8 bytes, in batches
  std::optional<double> stream_ratio = {};     // puts of 10 KB
  std::optional<double> sleeping_ratio = {};   // both sides sleep until they are written to
};

struct RealNetwork {
  std::string name;  // as --fabric has it
  /// Joins as member `rank`; returns when all are there. Nobody may count as failed for being
  /// silent: while the limit has its turn, nobody polls.
  std::function<std::unique_ptr<Fabric>(const std::string& group, std::uint32_t members,
                                        std::uint32_t rank)>
      join;
  /// What the same processes can do without Dunlin; made before the team forks.
  std::function<std::unique_ptr<Bare>()> bare;
  bool passive_target;            // Properties has it, too, but only when it is joined
  std::uint32_t trips_per_batch;  // round trips that take some ten microseconds
  FabricGoals goals = {};
};

/// Those that this build and this machine have.
[[nodiscard]] const std::vector<RealNetwork>& real_networks();

/// Members `first` to `first + count - 1`, all in this process.
[[nodiscard]] std::vector<std::unique_ptr<Fabric>> join_many(const RealNetwork& network,
                                                             const std::string& group,
                                                             std::uint32_t members,
                                                             std::uint32_t first,
                                                             std::uint32_t count);

}  // namespace dunlin::bench
