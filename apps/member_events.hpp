#pragma once

#include <string>

#include <dunlin/group.hpp>

namespace dunlin::app {

/// From now on prints a line to standard error, with the time, for whatever this member of that
/// name sees happen to a member of the group: suspicions, removals, kills, joins and leaves.
void print_member_events(Group& group, const std::string& name);

}  // namespace dunlin::app
