#include <dunlin/fabric/ofi.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/meeting/introductions.hpp"
#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/ofi/provider.hpp"
#include "fabric/stream/stream_fabric.hpp"
#include "fabric/system.hpp"

namespace dunlin::ofi {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

std::unique_ptr<OfiTransport> listen_on(Network& network, std::uint32_t members) {
  try {
    return std::make_unique<OfiTransport>(network, members);
  } catch (const Error& error) {
    throw Error(network.description + ": " + error.what());
  }
}

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& given) {
  JoinOptions options = given;
  const std::string place = launch::complete(options);
  const std::uint32_t members = meeting::count_members(options);
  Network network = choose_network({.provider = options.provider,
                                    .device = options.device,
                                    .address = options.address,
                                    .meeting = options.meeting});
  std::unique_ptr<OfiTransport> transport = listen_on(network, members);
  if (!place.empty()) network.description += "; " + place;
  const meeting::Roster roster = meeting::meet_as(options, place, transport->card());
  meeting::Introductions all = meeting::introduce(roster);
  // All are there, so this takes no time worth mentioning; but the meeting may have taken it all.
  const std::uint64_t deadline_ns = read_clock_ns(CLOCK_MONOTONIC) + options.timeout_ms * kNsPerMs;
  transport->connect(roster.rank, all.cards, all.our_proofs, all.their_proofs, deadline_ns);
  return std::make_unique<stream::StreamFabric>(stream::Attachment{
      .kind = "ofi",
      .description = std::move(network.description),
      .group = options.group,
      .rank = roster.rank,
      .names = std::move(all.names),
      .host_members = count_on_this_host(options.provider, all.cards, roster.rank),
      .silence_timeout_ms = options.silence_timeout_ms,
      .formed_by_ns = deadline_ns,
      .our_proofs = std::move(all.our_proofs),
      .their_proofs = std::move(all.their_proofs),
      .transport = std::move(transport)});
}

std::string description(const Fabric& fabric) {
  const auto* made = dynamic_cast<const stream::StreamFabric*>(&fabric);
  return made == nullptr || fabric.kind() != "ofi" ? std::string() : made->description();
}

std::vector<std::string> networks() {
  return why_not_loaded().empty() ? list_networks() : std::vector<std::string>();
}

std::vector<std::string> unfit_networks() {
  const std::string why = why_not_loaded();
  return why.empty() ? list_unfit_networks() : std::vector{"libfabric: " + why};
}

}  // namespace dunlin::ofi
