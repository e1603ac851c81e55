#include "fabric/shm/identity.hpp"

#include <numeric>
#include <utility>

#include <sys/random.h>

#include "fabric/hash.hpp"
#include "fabric/member_list.hpp"
#include "fabric/shm/membarrier.hpp"

namespace dunlin::shm {
namespace {

std::uint64_t hash_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) (all += name) += '\0';
  return fnv1a(all);
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    checked(static_cast<int>(getrandom(&number, sizeof number, 0)), "drawing a random number");
  return number;
}

}  // namespace

std::string Identity::who(Rank of) const { return member_text(names, of); }

Identity identity_from(const JoinOptions& options) {
  MemberList list = member_list({.group = options.group,
                                 .members = options.members,
                                 .names = options.names,
                                 .name = options.name,
                                 .rank = options.rank,
                                 .limit = kMaxHostMembers,
                                 .limit_name = "kMaxHostMembers"});
  Identity self;
  self.group = options.group;
  self.names = std::move(list.names);
  self.rank = list.rank;
  self.names_hash = options.names.empty() ? 0 : hash_of(options.names);
  self.incarnation = random_number();
  self.silence_timeout_ms = options.silence_ms();
  self.has_barriers = register_for_barriers();
  return self;
}

Identity identity_of(const Entry& entry, std::vector<std::string> names,
                     std::uint32_t silence_timeout_ms) {
  return {.group = entry.group,
          .names = std::move(names),
          .names_hash = 0,
          .rank = entry.rank(),
          .incarnation = random_number(),
          .silence_timeout_ms = silence_timeout_ms,
          .has_barriers = register_for_barriers(),
          .fabric = "shm"};
}

std::vector<Rank> wanted_ranks(const Identity& self) {
  if (self.rank != kAnyRank) return {self.rank};
  std::vector<Rank> all(self.members());
  std::iota(all.begin(), all.end(), Rank{0});
  return all;
}

}  // namespace dunlin::shm
