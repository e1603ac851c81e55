#include "group/scope.hpp"

#include <algorithm>

#include <dunlin/error.hpp>

#include "fabric/names.hpp"
#include "group/control_channel.hpp"

namespace dunlin::group {
namespace {

/// The rank of a name; a member that comes again under its name has a higher rank than before.
[[nodiscard]] Rank rank_of(const Fabric& fabric, const std::string& name, const std::string& who) {
  for (Rank rank = fabric.size(); rank-- > 0;)
    if (name_on(fabric, rank) == name) return rank;
  throw Error(who + "FurtherGroup::members has '" + name +
              "', which is no member of the fabric; all of them must be in it already");
}

[[noreturn]] void refuse_twice(const std::string& name, const std::string& who) {
  throw Error(who + "FurtherGroup::members has '" + name + "' twice");
}

}  // namespace

Scope scope_of(const GroupOptions& options) {
  if (!options.further) return {};
  const FurtherGroup& further = *options.further;
  check_further_group_name(further.name);
  const std::string who = "group '" + further.name + "': ";
  if (options.rendezvous)
    throw Error(who +
                "a further group on a fabric has no rendezvous: processes join the fabric's own "
                "group, and members of the fabric can form another further group");
  if (further.channel == kGroupChannel)
    throw Error(who + "FurtherGroup::channel is " + std::to_string(kGroupChannel) +
                " (kGroupChannel), that of the fabric's own group; give another one");
  return {.name = further.name, .channel = further.channel};
}

std::vector<Rank> first_ranks(const Fabric& fabric, const GroupOptions& options) {
  std::vector<Rank> ranks;
  if (!options.further) {
    for (Rank rank = 0; rank < fabric.size(); ++rank) ranks.push_back(rank);
    return ranks;
  }
  const std::string who = "group '" + options.further->name + "': ";
  for (const std::string& name : options.further->members) {
    const Rank rank = rank_of(fabric, name, who);
    if (std::ranges::find(ranks, rank) != ranks.end()) refuse_twice(name, who);
    ranks.push_back(rank);
  }
  if (std::ranges::find(ranks, fabric.rank()) == ranks.end())
    throw Error(who + "FurtherGroup::members lacks this member, '" +
                name_on(fabric, fabric.rank()) + "'; only its members make a group");
  return ranks;
}

}  // namespace dunlin::group
