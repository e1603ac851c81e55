#include "fabric/join/network.hpp"
#include "fabric/ofi/offer.hpp"
#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/ofi/provider.hpp"
#include "fabric/stream/network_entry.hpp"
#include "fabric/stream/network_join.hpp"
#include "fabric/stream/network_rendezvous.hpp"

namespace dunlin::ofi {
namespace {

using NetworkJoin = stream::NetworkJoin<OfiTransport>;
using NetworkEntry = stream::NetworkEntry<OfiTransport>;

std::unique_ptr<OfiTransport> listen_on(Network& network, std::uint32_t members) {
  try {
    return std::make_unique<OfiTransport>(network, members);
  } catch (const Error& error) {
    throw Error(network.description + ": " + error.what());
  }
}

Network network_for(const JoinOptions& options) {
  return choose_network({.provider = options.provider,
                         .device = options.device,
                         .address = options.address,
                         .rendezvous = options.rendezvous});
}

stream::Describe describe(const std::string& description, const std::string& provider) {
  return [description, provider](stream::Attachment& made, const rendezvous::PeerEndpoints& all) {
    made.kind = "ofi";
    made.description = description;
    made.host_members = count_on_this_host(provider, all.endpoint_addresses, made.rank);
  };
}

JoinOptions with_provider(JoinOptions options) {
  if (options.provider.empty()) options.provider = kDefaultProvider;
  return options;
}

NetworkJoin::Parts parts(const JoinOptions& given, const std::string& place) {
  const JoinOptions options = with_provider(given);
  const std::uint32_t members = rendezvous::count_members(options);
  Network network = network_for(options);
  std::unique_ptr<OfiTransport> transport = listen_on(network, members);
  const std::string description =
      network.description + (place.empty() ? std::string() : "; " + place);
  return {.network = std::move(transport),
          .rendezvous = rendezvous::rendezvous_options(options),
          .place = place,
          .silence_timeout_ms = options.silence_ms(),
          .describe = describe(description, options.provider)};
}

std::unique_ptr<PendingEntry> begin_entry(const JoinOptions& given) {
  const JoinOptions options = with_provider(given);
  Network network = network_for(options);
  std::unique_ptr<OfiTransport> transport = listen_on(network, 1);
  return std::make_unique<NetworkEntry>(
      NetworkEntry::Parts{.network = std::move(transport),
                          .timeout_ms = options.join_ms(),
                          .silence_timeout_ms = options.silence_ms(),
                          .describe = describe(network.description, options.provider)});
}

}  // namespace

stream::Offer offer(const JoinOptions& given, std::uint32_t members) {
  const JoinOptions options = with_provider(given);
  Network network = network_for(options);
  auto transport = listen_on(network, members);
  return {.name = "ofi",
          .description = network.description,
          .network = std::make_unique<stream::FormingOver<OfiTransport>>(std::move(transport))};
}

namespace {

std::unique_ptr<SteppedJoin> begin_join(const JoinOptions& options, const std::string& place) {
  return std::make_unique<NetworkJoin>(parts(options, place));
}

std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& options,
                                            std::vector<std::string> contacts) {
  return std::make_shared<stream::NetworkRendezvous>(options, std::move(contacts), begin_join,
                                                     begin_entry);
}

std::vector<std::string> devices() {
  return why_not_loaded().empty() ? list_networks() : std::vector<std::string>();
}

std::vector<std::string> unfit_devices() {
  const std::string why = why_not_loaded();
  return why.empty() ? list_unfit_networks() : std::vector{"libfabric: " + why};
}

}  // namespace

constinit const JoinableNetwork kNetwork{.begin_join = begin_join,
                                         .make_rendezvous = make_rendezvous,
                                         .devices = devices,
                                         .unfit_devices = unfit_devices};

}  // namespace dunlin::ofi
