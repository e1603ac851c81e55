#pragma once

#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "sim/audit.hpp"
#include "sim/disks.hpp"
#include "sim/draw.hpp"

namespace dunlin::app::sim {

/// After a crash of all machines, all members start again with what is on their disks, crash once
/// more at some moment, and start again: all are given the same, which begins with what anybody has
/// ever delivered, and they go on. The first fault, as a sentence.
[[nodiscard]] std::string fault_of_restart(const Record& record,
                                           const std::vector<SubgroupSpec>& specs,
                                           const std::vector<MulticastOptions>& options,
                                           Disks& disks, Draw& draw);

}  // namespace dunlin::app::sim
