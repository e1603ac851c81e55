#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

/// The members of a group, as the options of every join give them: their number, or their names.
namespace dunlin {

inline constexpr Rank kAnyRank = UINT32_MAX;

struct Membership {
  const std::string& group;
  std::uint32_t members;
  const std::vector<std::string>& names;
  const std::string& name;
  Rank rank;  // the wanted rank, or kAnyRank
  // How many members are possible, and why.
  std::uint32_t limit;
  std::string_view limit_name;
};

struct MemberList {
  std::vector<std::string> names;  // by rank; empty strings if members are counted
  Rank rank;                       // the rank that this member must have, or kAnyRank
};
/// Throws Error that says which of the options make no sense.
[[nodiscard]] MemberList member_list(const Membership& wanted);

/// Names a member for messages: "rank 2", or "'c' (rank 2)".
[[nodiscard]] std::string member_text(const std::vector<std::string>& names, Rank rank);

}  // namespace dunlin
