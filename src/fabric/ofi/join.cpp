#include <array>
#include <cstring>

#include <dunlin/fabric/ofi.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/meeting/crypto.hpp"
#include "fabric/meeting/meeting.hpp"
#include "fabric/names.hpp"
#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/ofi/provider.hpp"
#include "fabric/stream/stream_fabric.hpp"
#include "fabric/system.hpp"

namespace dunlin::ofi {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

/// S7: HMAC-SHA256 with the group's key over a label, who calls and whom.
stream::Proof prove(const std::array<std::byte, 32>& key, Rank from, Rank to) {
  std::array<std::byte, 24> claim{};
  constexpr std::string_view kLabel = "dunlin stream 1 ";
  static_assert(kLabel.size() + 8 == claim.size());
  std::memcpy(claim.data(), kLabel.data(), kLabel.size());
  std::memcpy(claim.data() + kLabel.size(), &from, 4);
  std::memcpy(claim.data() + kLabel.size() + 4, &to, 4);
  return meeting::hmac_sha256(key, claim);
}

std::uint32_t count_members(const JoinOptions& options) {
  const std::size_t members = options.names.empty() ? options.members : options.names.size();
  if (members == 0) throw Error("group '" + options.group + "' has no members: say how many");
  if (members > kMaxStreamMembers)
    throw Error("group '" + options.group + "' would have " + std::to_string(members) +
                " members; the limit is " + std::to_string(kMaxStreamMembers) +
                " (kMaxStreamMembers)");
  return static_cast<std::uint32_t>(members);
}

std::unique_ptr<OfiTransport> listen_on(Network& network, std::uint32_t members) {
  try {
    return std::make_unique<OfiTransport>(network, members);
  } catch (const Error& error) {
    throw Error(network.description + ": " + error.what());
  }
}

meeting::Roster meet(const JoinOptions& options, const std::string& place,
                     std::span<const std::byte> card) {
  try {
    return meeting::meet({.address = options.meeting,
                          .secret = options.secret,
                          .tls = options.tls,
                          .group = options.group,
                          .members = options.members,
                          .names = options.names,
                          .name = options.name,
                          .rank = options.rank,
                          .timeout_ms = options.timeout_ms},
                         card);
  } catch (const Error& error) {
    if (place.empty()) throw;
    throw Error(std::string(error.what()) + ". This member's place: " + place);
  }
}

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& given) {
  JoinOptions options = given;
  const std::string place = launch::complete(options);
  check_group_name(options.group);
  const std::uint32_t members = count_members(options);
  Network network = choose_network({.provider = options.provider,
                                    .device = options.device,
                                    .address = options.address,
                                    .meeting = options.meeting});
  std::unique_ptr<OfiTransport> transport = listen_on(network, members);
  if (!place.empty()) network.description += "; " + place;
  const meeting::Roster roster = meet(options, place, transport->card());
  stream::Attachment attachment{.kind = "ofi",
                                .description = std::move(network.description),
                                .group = options.group,
                                .rank = roster.rank,
                                .names = {},
                                .silence_timeout_ms = options.silence_timeout_ms,
                                .our_proofs = {},
                                .their_proofs = {},
                                .transport = nullptr};
  std::vector<std::vector<std::byte>> cards;
  for (Rank peer = 0; peer < roster.members.size(); ++peer) {
    attachment.names.push_back(roster.members[peer].name);
    attachment.our_proofs.push_back(prove(roster.key, roster.rank, peer));
    attachment.their_proofs.push_back(prove(roster.key, peer, roster.rank));
    cards.push_back(roster.members[peer].card);
  }
  attachment.host_members = count_on_this_host(options.provider, cards, roster.rank);
  // All are there, so this takes no time worth mentioning; but the meeting may have taken it all.
  const std::uint64_t deadline_ns = read_clock_ns(CLOCK_MONOTONIC) + options.timeout_ms * kNsPerMs;
  transport->connect(roster.rank, cards, attachment.our_proofs, attachment.their_proofs,
                     deadline_ns);
  attachment.transport = std::move(transport);
  return std::make_unique<stream::StreamFabric>(std::move(attachment));
}

std::string description(const Fabric& fabric) {
  const auto* made = dynamic_cast<const stream::StreamFabric*>(&fabric);
  return made == nullptr ? std::string() : made->description();
}

std::vector<std::string> networks() { return list_networks(); }

std::vector<std::string> unfit_networks() { return list_unfit_networks(); }

}  // namespace dunlin::ofi
