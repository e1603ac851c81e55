#include <algorithm>

#include <dunlin/fabric/verbs.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/meeting/introductions.hpp"
#include "fabric/stream/stream_fabric.hpp"
#include "fabric/verbs/verbs_transport.hpp"

namespace dunlin::verbs {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

std::unique_ptr<VerbsTransport> listen_on(const Network& network, std::uint32_t members) {
  try {
    return std::make_unique<VerbsTransport>(network, members);
  } catch (const Error& error) {
    throw Error("verbs on " + network.place.device + ", address " + network.place.address + ": " +
                error.what());
  }
}

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& given) {
  JoinOptions options = given;
  const std::string place = launch::complete(options);
  const std::uint32_t members = meeting::count_members(options);
  const Network network = choose_network({.device = options.device, .address = options.address});
  std::unique_ptr<VerbsTransport> transport = listen_on(network, members);
  const meeting::Roster roster = meeting::meet_as(options, place, transport->card());
  meeting::Introductions all = meeting::introduce(roster);
  // All are there, so this takes no time worth mentioning; but the meeting may have taken it all.
  const std::uint64_t deadline_ns = read_clock_ns(CLOCK_MONOTONIC) + options.timeout_ms * kNsPerMs;
  transport->connect(roster.rank, all.cards, all.our_proofs, all.their_proofs, deadline_ns);
  std::string description = transport->description();
  if (!place.empty()) description += "; " + place;
  const auto here = std::count_if(
      all.cards.begin(), all.cards.end(),
      [&](const std::vector<std::byte>& card) { return same_host(card, all.cards[roster.rank]); });
  return std::make_unique<stream::StreamFabric>(
      stream::Attachment{.kind = "verbs",
                         .description = std::move(description),
                         .group = options.group,
                         .rank = roster.rank,
                         .names = std::move(all.names),
                         .host_members = static_cast<std::uint32_t>(here),
                         .silence_timeout_ms = options.silence_timeout_ms,
                         .formed_by_ns = deadline_ns,
                         .our_proofs = std::move(all.our_proofs),
                         .their_proofs = std::move(all.their_proofs),
                         .transport = std::move(transport)});
}

std::string description(const Fabric& fabric) {
  const auto* made = dynamic_cast<const stream::StreamFabric*>(&fabric);
  return made == nullptr || fabric.kind() != "verbs" ? std::string() : made->description();
}

std::vector<std::string> devices() {
  std::vector<std::string> all;
  try {
    for (const Place& place : list_places()) all.push_back(place.device + " " + place.address);
  } catch (const Error& error) {
    return {error.what()};
  }
  return all;
}

}  // namespace dunlin::verbs
