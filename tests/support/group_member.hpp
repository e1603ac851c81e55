#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/remote/in_flight.hpp>

namespace dunlin::test {

/// A member of a group whose segments, containers or store go on when another one dies.
struct GroupMember {
  explicit GroupMember(Fabric& fabric, std::uint32_t most = 0)
      : group(fabric), members(group, most), progress(fabric, members) {}
  /// It has not been removed, as far as it knows.
  [[nodiscard]] bool is_member() const { return members.why_stopped().empty(); }

  Group group;
  GroupMembers members;
  remote::Progress progress;
};

}  // namespace dunlin::test
