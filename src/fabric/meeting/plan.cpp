#include "fabric/meeting/plan.hpp"

#include <algorithm>
#include <set>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/meeting/bytes.hpp"
#include "fabric/meeting/frame.hpp"
#include "fabric/names.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::size_t kGroupField = 48;
static_assert(kMaxGroupNameBytes < kGroupField);
static_assert(4 + 4 + sizeof(Digest) + kGroupField == kIntroductionBytes);

Digest hash_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) (all += name) += '\0';
  return sha256(bytes_of(all));
}

void check_names(const std::string& group, const Options& options) {
  for (const std::string& name : options.names) check_member_name(name);
  const std::set<std::string> distinct(options.names.begin(), options.names.end());
  if (distinct.size() != options.names.size())
    throw Error(group + " has a member name twice: names must differ");
  if (distinct.count(options.name) == 0)
    throw Error(group + " has no member '" + options.name +
                "': `name` must be one of the names in the list");
  if (options.rank != kAnyRank)
    throw Error(group +
                ": give a rank or names, not both: a named member's rank is its place in "
                "the list");
  if (options.members != 0 && options.members != options.names.size())
    throw Error(group + " has " + std::to_string(options.names.size()) + " names, and " +
                std::to_string(options.members) + " members: give one of the two");
}

void check_count(const std::string& group, const Options& options) {
  if (!options.name.empty())
    throw Error(group + " is joined by count, and by the name '" + options.name +
                "': a named member needs the list of all names");
  if (options.rank != kAnyRank && options.rank >= options.members)
    throw Error(group + " has no rank " + std::to_string(options.rank) + ": with " +
                std::to_string(options.members) + " members, ranks are 0 to " +
                std::to_string(options.members - 1));
}

}  // namespace

std::string Plan::who(Rank of) const {
  std::string number = "rank " + std::to_string(of);
  if (of >= names.size() || names[of].empty()) return number;
  return "'" + names[of] + "' (" + number + ")";
}

Plan plan_from(const Options& options, Bytes card) {
  check_group_name(options.group);
  const std::string group = "group '" + options.group + "'";
  if (options.secret.size() < kMinSecretBytes)
    throw Error(group + ": its secret has " + std::to_string(options.secret.size()) +
                " bytes, and at least " + std::to_string(kMinSecretBytes) +
                " are needed (kMinSecretBytes). A good one: openssl rand -hex 32");
  if (card.size() > kMaxCardBytes)
    throw Error(group + ": a card of " + std::to_string(card.size()) + " bytes is too long: " +
                std::to_string(kMaxCardBytes) + " are possible (kMaxCardBytes)");
  const bool named = !options.names.empty();
  const std::size_t members = named ? options.names.size() : options.members;
  if (members == 0 || members > kMaxMembers)
    throw Error(group + " cannot have " + std::to_string(members) + " members: 1 to " +
                std::to_string(kMaxMembers) + " are possible (kMaxMembers)");
  named ? check_names(group, options) : check_count(group, options);

  Plan plan;
  plan.address = options.address;
  plan.secret = options.secret;
  plan.group = options.group;
  plan.names = options.names;
  plan.names.resize(members);
  plan.rank = options.rank;
  plan.timeout_ms = options.timeout_ms;
  if (named) {
    const auto at = std::find(options.names.begin(), options.names.end(), options.name);
    plan.rank = static_cast<Rank>(at - options.names.begin());
    plan.names_hash = hash_of(options.names);
  }
  return plan;
}

std::vector<std::byte> encode(const Introduction& introduction) {
  std::vector<std::byte> body;
  Writer writer(body);
  writer.u32(introduction.members);
  writer.u32(introduction.rank);
  writer.bytes(introduction.names_hash);
  writer.text(introduction.group, kGroupField);
  writer.bytes(introduction.card);
  return body;
}

bool decode(Bytes body, Introduction& introduction) {
  Reader reader(body);
  introduction.members = reader.u32();
  introduction.rank = reader.u32();
  introduction.names_hash = reader.array<sizeof(Digest)>();
  introduction.group = reader.text(kGroupField);
  introduction.card = reader.rest();
  if (!reader.good() || introduction.card.size() > kMaxCardBytes) return false;
  try {  // it may be shown to a user
    check_group_name(introduction.group);
  } catch (const Error&) {
    return false;
  }
  return introduction.members >= 1 &&
         (introduction.rank == kAnyRank || introduction.rank < introduction.members);
}

}  // namespace dunlin::meeting
