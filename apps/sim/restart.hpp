#pragma once

#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "sim/audit.hpp"
#include "sim/disks.hpp"
#include "sim/draw.hpp"

namespace dunlin::app::sim {

/// Tests a crash of all machines: members start again from their disks, crash once more at some
/// moment, and start again. All must replay the same messages, which begin with those that any
/// member has ever delivered, and go on. Returns the first fault, as a sentence.
[[nodiscard]] std::string fault_of_restart(const Record& record,
                                           const std::vector<SubgroupSpec>& specs,
                                           const std::vector<MulticastOptions>& options,
                                           Disks& disks, Draw& draw);

}  // namespace dunlin::app::sim
