#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/limits.hpp>

/// What a group has of its own on a fabric that it may share with other groups. Pure.
namespace dunlin::group {

struct Scope {
  std::string name = {};  // empty: the fabric's own group
  std::uint32_t channel = kGroupChannel;

  [[nodiscard]] bool further() const noexcept { return !name.empty(); }
  /// The name of a table or region of the group itself.
  [[nodiscard]] std::string region(const std::string& base) const {
    return further() ? base + ":" + name : base;
  }
  /// The name by which a participant knows a subgroup. (No name of a subgroup has a colon.)
  [[nodiscard]] std::string subgroup(const std::string& declared) const {
    return further() ? name + ":" + declared : declared;
  }
};

/// Throws Error if a group with these options cannot be made on that fabric.
[[nodiscard]] Scope scope_of(const GroupOptions& options);
/// The ranks of a group's first view. Throws Error if they cannot be known.
[[nodiscard]] std::vector<Rank> first_ranks(const Fabric& fabric, const GroupOptions& options);

}  // namespace dunlin::group
