#include "fabric/meeting/plan.hpp"

#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/bytes.hpp"
#include "fabric/meeting/frame.hpp"
#include "fabric/names.hpp"
#include "fabric/private_file.hpp"

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

}  // namespace

Plan plan_from(const Options& options, Bytes card) {
  MemberList list = member_list({.group = options.group,
                                 .members = options.members,
                                 .names = options.names,
                                 .name = options.name,
                                 .rank = options.rank,
                                 .limit = kMaxMembers,
                                 .limit_name = "kMaxMembers"});
  Plan plan;
  plan.address = options.address;
  plan.group = options.group;
  plan.names = std::move(list.names);
  if (!options.names.empty()) plan.names_hash = hash_of(options.names);
  plan.rank = list.rank;
  plan.timeout_ms = options.timeout_ms;
  plan.may_host = options.may_host;
  plan.all_must_fit = options.all_must_fit;
  if (plan.counted() && !options.name.empty())
    throw Error(plan.group_text() + " is joined by count, and by the name '" + options.name +
                "': a named member needs the list of all names");
  if (options.secret.size() < kMinSecretBytes)
    throw Error(plan.group_text() + ": its secret has " + std::to_string(options.secret.size()) +
                " bytes, and at least " + std::to_string(kMinSecretBytes) +
                " are needed (kMinSecretBytes). A good one: openssl rand -hex 32");
  plan.tls = std::make_shared<const Tls>(options.secret, options.tls);
  plan.tls->check_own_certificate();
  if (card.size() > kMaxCardBytes)
    throw Error(plan.group_text() + ": a card of " + std::to_string(card.size()) +
                " bytes is too long: " + std::to_string(kMaxCardBytes) +
                " are possible (kMaxCardBytes)");
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
