#include "fabric/shm/identity.hpp"

#include <algorithm>
#include <set>

#include <sys/random.h>

#include "fabric/names.hpp"
#include "fabric/shm/membarrier.hpp"

namespace dunlin::shm {
namespace {

std::uint64_t hash_of(const std::vector<std::string>& names) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const std::string& name : names) {
    for (char c : name) add(static_cast<unsigned char>(c));
    add(0);
  }
  return hash;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    checked(static_cast<int>(getrandom(&number, sizeof number, 0)), "drawing a random number");
  return number;
}

void check_count(const std::string& group, std::uint32_t members) {
  if (members > 0 && members <= kMaxHostMembers) return;
  throw Error(group + " cannot have " + std::to_string(members) + " members: 1 to " +
              std::to_string(kMaxHostMembers) + " are possible on one host (kMaxHostMembers)");
}

void check_names(const std::string& group, const JoinOptions& options) {
  for (const std::string& name : options.names) check_member_name(name);
  const std::set<std::string> distinct(options.names.begin(), options.names.end());
  if (distinct.size() != options.names.size())
    throw Error(group + " has a member name twice: names must differ");
  if (distinct.count(options.name) == 0)
    throw Error(group + " has no member '" + options.name +
                "': `name` must be one of the names in the list");
  if (options.rank != JoinOptions::kAnyRank)
    throw Error(group +
                ": give a rank or names, not both: a named member's rank is its place in "
                "the list");
  if (options.members != 0 && options.members != options.names.size())
    throw Error(group + " has " + std::to_string(options.names.size()) + " names, and " +
                std::to_string(options.members) + " members: give one of the two");
}

}  // namespace

std::string Identity::who(Rank of) const {
  std::string number = "rank " + std::to_string(of);
  if (of >= names.size() || names[of].empty()) return number;
  return "'" + names[of] + "' (" + number + ")";
}

Identity identity_from(const JoinOptions& options) {
  check_group_name(options.group);
  const std::string group = "group '" + options.group + "'";
  if (!options.names.empty()) check_names(group, options);
  const auto members =
      options.names.empty() ? options.members : static_cast<std::uint32_t>(options.names.size());
  check_count(group, members);
  if (options.names.empty() && options.rank != JoinOptions::kAnyRank && options.rank >= members)
    throw Error(group + " has no rank " + std::to_string(options.rank) + ": with " +
                std::to_string(members) + " members, ranks are 0 to " +
                std::to_string(members - 1));
  Identity self;
  self.group = options.group;
  self.names = options.names;
  self.names.resize(members);
  self.names_hash = options.names.empty() ? 0 : hash_of(options.names);
  self.incarnation = random_number();
  self.silence_timeout_ms = options.silence_timeout_ms;
  self.has_barriers = register_for_barriers();
  return self;
}

std::vector<Rank> wanted_ranks(const JoinOptions& options) {
  if (!options.names.empty()) {
    const auto at = std::find(options.names.begin(), options.names.end(), options.name);
    return {static_cast<Rank>(at - options.names.begin())};
  }
  if (options.rank != JoinOptions::kAnyRank) return {options.rank};
  std::vector<Rank> all;
  for (Rank rank = 0; rank < options.members; ++rank) all.push_back(rank);
  return all;
}

}  // namespace dunlin::shm
