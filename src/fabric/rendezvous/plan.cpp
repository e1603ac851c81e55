#include "fabric/rendezvous/plan.hpp"

#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/bytes.hpp"
#include "fabric/names.hpp"
#include "fabric/private_file.hpp"
#include "fabric/rendezvous/frame.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::size_t kGroupField = 48;
static_assert(kMaxGroupNameBytes < kGroupField);
constexpr std::size_t kTermsField = kMaxTermsBytes + 1;
static_assert(4 + 4 + sizeof(Digest) + kGroupField + kTermsField == kJoinRequestBytes);

Digest hash_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) (all += name) += '\0';
  return sha256(bytes_of(all));
}

}  // namespace

Plan plan_from(const Options& options, Bytes endpoint_address) {
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
  plan.terms = options.terms;
  plan.rank = list.rank;
  plan.timeout_ms = options.timeout_ms;
  plan.may_host = options.may_host;
  plan.all_must_fit = options.all_must_fit;
  if (plan.counted() && !options.name.empty())
    throw Error(plan.group_text() + " is joined by count, and by the name '" + options.name +
                "': a named member needs the list of all names");
  if (!is_printable(plan.terms) || plan.terms.size() > kMaxTermsBytes)
    throw Error(plan.group_text() + ": its network is not described by at most " +
                std::to_string(kMaxTermsBytes) +
                " printable characters: choose a provider with a shorter name");
  if (options.secret.size() < kMinSecretBytes)
    throw Error(plan.group_text() + ": its secret has " + std::to_string(options.secret.size()) +
                " bytes, and at least " + std::to_string(kMinSecretBytes) +
                " are needed (kMinSecretBytes). A good one: openssl rand -hex 32");
  plan.tls = std::make_shared<const Tls>(options.secret, options.tls);
  plan.tls->check_own_certificate();
  if (endpoint_address.size() > kMaxEndpointAddressBytes)
    throw Error(plan.group_text() + ": an endpoint address of " +
                std::to_string(endpoint_address.size()) +
                " bytes is too long: " + std::to_string(kMaxEndpointAddressBytes) +
                " are possible (kMaxEndpointAddressBytes)");
  return plan;
}

std::vector<std::byte> encode(const JoinRequest& request) {
  std::vector<std::byte> body;
  Writer writer(body);
  writer.u32(request.members);
  writer.u32(request.rank);
  writer.bytes(request.names_hash);
  writer.text(request.group, kGroupField);
  writer.text(request.terms, kTermsField);
  writer.bytes(request.endpoint_address);
  return body;
}

bool decode(Bytes body, JoinRequest& request) {
  Reader reader(body);
  request.members = reader.u32();
  request.rank = reader.u32();
  request.names_hash = reader.array<sizeof(Digest)>();
  request.group = reader.text(kGroupField);
  request.terms = reader.text(kTermsField);
  request.endpoint_address = reader.rest();
  if (!reader.good() || request.endpoint_address.size() > kMaxEndpointAddressBytes) return false;
  try {  // the text may be shown to a user
    check_group_name(request.group);
  } catch (const Error&) {
    return false;
  }
  return is_printable(request.terms) && request.members >= 1 &&
         (request.rank == kAnyRank || request.rank < request.members);
}

}  // namespace dunlin::rendezvous
