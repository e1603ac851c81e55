#include "fabric/member_list.hpp"

#include <algorithm>
#include <set>

#include <dunlin/error.hpp>

#include "fabric/names.hpp"

namespace dunlin {
namespace {

void check_names(const std::string& group, const Membership& wanted) {
  for (const std::string& name : wanted.names) check_member_name(name);
  const std::set<std::string> distinct(wanted.names.begin(), wanted.names.end());
  if (distinct.size() != wanted.names.size())
    throw Error(group + " has a member name twice: names must differ");
  if (distinct.count(wanted.name) == 0)
    throw Error(group + " has no member '" + wanted.name +
                "': `name` must be one of the names in the list");
  if (wanted.rank != kAnyRank)
    throw Error(group +
                ": give a rank or names, not both: a named member's rank is its place in "
                "the list");
  if (wanted.members != 0 && wanted.members != wanted.names.size())
    throw Error(group + " has " + std::to_string(wanted.names.size()) + " names, and " +
                std::to_string(wanted.members) + " members: give one of the two");
}

}  // namespace

MemberList member_list(const Membership& wanted) {
  check_group_name(wanted.group);
  const std::string group = "group '" + wanted.group + "'";
  if (!wanted.names.empty()) check_names(group, wanted);
  const std::size_t members = wanted.names.empty() ? wanted.members : wanted.names.size();
  if (members == 0 || members > wanted.limit)
    throw Error(group + " cannot have " + std::to_string(members) + " members: 1 to " +
                std::to_string(wanted.limit) + " are possible (" + std::string(wanted.limit_name) +
                ")");
  if (wanted.rank != kAnyRank && wanted.rank >= members)
    throw Error(group + " has no rank " + std::to_string(wanted.rank) + ": with " +
                std::to_string(members) + " members, ranks are 0 to " +
                std::to_string(members - 1));
  MemberList list{wanted.names, wanted.rank};
  list.names.resize(members);
  const auto at = std::find(wanted.names.begin(), wanted.names.end(), wanted.name);
  if (at != wanted.names.end()) list.rank = static_cast<Rank>(at - wanted.names.begin());
  return list;
}

std::string member_text(const std::vector<std::string>& names, Rank rank) {
  std::string number = "rank " + std::to_string(rank);
  if (rank >= names.size() || names[rank].empty()) return number;
  return "'" + names[rank] + "' (" + number + ")";
}

}  // namespace dunlin
