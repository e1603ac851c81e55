#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/simulated_disk.hpp"
#include "sim/audit.hpp"
#include "sim/draw.hpp"

namespace dunlin::app::sim {

/// The disks of a scenario's members, on which its durable subgroups have their logs.
class Disks {
 public:
  /// `trims`: the logs begin with snapshots of the members' states.
  Disks(std::uint32_t members, std::uint64_t seed, bool trims);
  [[nodiscard]] bool trims() const noexcept { return trims_; }

  /// Those options for that member.
  [[nodiscard]] std::vector<MulticastOptions> options(
      std::uint32_t member, std::vector<MulticastOptions> options,
      const std::vector<SubgroupPlan>& subgroups) const;

  /// Makes one slow, or fails it; returns what was done, to be said behind the member's name.
  std::string trouble(std::uint32_t member, Draw& draw);
  /// Whether its log may fail, or may have failed.
  [[nodiscard]] bool may_fail(std::uint32_t member) const { return may_fail_[member]; }
  /// Nothing more happens to them.
  void mend();

  /// Lets all machines crash.
  void crash();
  /// ... and the log that would be taken then has all that anybody has delivered, and everybody's
  /// own has what it has delivered itself. The first fault, as a sentence.
  [[nodiscard]] std::string crash_all_and_find_fault(const Record& record,
                                                     const std::string& group);

 private:
  void set_pace(std::uint32_t member);

  std::uint64_t seed_;
  bool trims_;
  std::vector<std::shared_ptr<log::SimulatedDisk>> disks_;
  std::vector<bool> may_fail_;
};

}  // namespace dunlin::app::sim
