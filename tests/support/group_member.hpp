#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <dunlin/fabric.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/remote/progress.hpp>

namespace dunlin::test {

/// A member of a group whose segments, containers or store go on when another one dies.
struct GroupMember {
  explicit GroupMember(Fabric& fabric, std::uint32_t most = 0)
      : GroupMember(std::make_unique<Group>(fabric), most) {}
  /// `most` is the number of ranks that can ever be members; 0: the founders alone.
  explicit GroupMember(std::unique_ptr<Group> its_group, std::uint32_t most = 0)
      : own_group(std::move(its_group)), members(group, most), progress(group.fabric(), members) {}
  /// It has not been removed, as far as it knows.
  [[nodiscard]] bool is_member() const { return members.why_stopped().empty(); }

  std::unique_ptr<Group> own_group;
  Group& group = *own_group;
  GroupMembers members;
  remote::Progress progress;
};

}  // namespace dunlin::test
