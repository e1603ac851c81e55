#include "fabric/rendezvous/peer_endpoints.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include "fabric/join/options.hpp"

namespace dunlin::rendezvous {

/// The proof: HMAC-SHA256 with the key over a label, the rank that connects, and the rank that
/// accepts.
Digest prove(const std::array<std::byte, 32>& key, Rank from, Rank to) {
  std::array<std::byte, 24> claim{};
  constexpr std::string_view kLabel = "dunlin stream 1 ";
  static_assert(kLabel.size() + 8 == claim.size());
  std::memcpy(claim.data(), kLabel.data(), kLabel.size());
  std::memcpy(claim.data() + kLabel.size(), &from, 4);
  std::memcpy(claim.data() + kLabel.size() + 4, &to, 4);
  return hmac_sha256(key, claim);
}

std::uint32_t count_members(const JoinOptions& options) {
  const MemberList list = member_list({.group = options.group,
                                       .members = options.members,
                                       .names = options.names,
                                       .name = options.name,
                                       .rank = options.rank,
                                       .limit = kMaxStreamMembers,
                                       .limit_name = "kMaxStreamMembers"});
  return static_cast<std::uint32_t>(list.names.size());
}

Options rendezvous_options(const JoinOptions& options) {
  return {.address = options.rendezvous,
          .secret = options.secret,
          .tls = options.tls,
          .group = options.group,
          .members = options.members,
          .names = options.names,
          .name = options.name,
          .rank = options.rank,
          .timeout_ms = options.join_ms(),
          .terms = terms(options),
          .may_host = options.may_serve};
}

PeerEndpoints peer_endpoints(const Roster& roster) {
  PeerEndpoints all;
  for (Rank peer = 0; peer < roster.members.size(); ++peer) {
    all.names.push_back(roster.members[peer].name);
    all.endpoint_addresses.push_back(roster.members[peer].endpoint_address);
    all.our_proofs.push_back(prove(roster.key, roster.rank, peer));
    all.their_proofs.push_back(prove(roster.key, peer, roster.rank));
  }
  return all;
}

}  // namespace dunlin::rendezvous
