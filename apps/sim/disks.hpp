#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/simulated_disk.hpp"
#include "sim/audit.hpp"

namespace dunlin::app::sim {

/// The disks of a scenario's members, on which its durable subgroups have their logs.
class Disks {
 public:
  Disks(std::uint32_t members, std::uint64_t seed);

  /// Those options for that member.
  [[nodiscard]] std::vector<MulticastOptions> options(
      std::uint32_t member, std::vector<MulticastOptions> options,
      const std::vector<SubgroupPlan>& subgroups) const;
  /// All machines crash: the log that would be taken then has all that anybody has delivered, and
  /// everybody's own has what it has delivered itself. The first fault, as a sentence.
  [[nodiscard]] std::string crash_all_and_find_fault(const Record& record,
                                                     const std::string& group);

 private:
  std::vector<std::shared_ptr<log::SimulatedDisk>> disks_;
};

}  // namespace dunlin::app::sim
