#include <algorithm>
#include <filesystem>
#include <system_error>

#include "fabric/join/network.hpp"
#include "fabric/socket_address.hpp"
#include "fabric/stream/network_entry.hpp"
#include "fabric/stream/network_join.hpp"
#include "fabric/stream/network_rendezvous.hpp"
#include "fabric/verbs/offer.hpp"
#include "fabric/verbs/verbs_transport.hpp"

namespace dunlin::verbs {
namespace {

using NetworkJoin = stream::NetworkJoin<VerbsTransport>;
using NetworkEntry = stream::NetworkEntry<VerbsTransport>;

std::unique_ptr<VerbsTransport> listen_on(const Network& network, std::uint32_t members) {
  try {
    return std::make_unique<VerbsTransport>(network, members);
  } catch (const Error& error) {
    throw Error("verbs on " + network.place.device + ", address " + network.place.address + ": " +
                error.what());
  }
}

stream::Describe describe(const std::string& place, const VerbsTransport* transport) {
  return [place, transport](stream::Attachment& made, const rendezvous::PeerEndpoints& all) {
    const auto here =
        std::count_if(all.endpoint_addresses.begin(), all.endpoint_addresses.end(),
                      [&](const std::vector<std::byte>& endpoint_address) {
                        return same_host(endpoint_address, all.endpoint_addresses[made.rank]);
                      });
    made.kind = "verbs";
    made.description = transport->description() + (place.empty() ? "" : "; " + place);
    made.host_members = static_cast<std::uint32_t>(here);
  };
}

NetworkJoin::Parts parts(const JoinOptions& options, const std::string& place) {
  const std::uint32_t members = rendezvous::count_members(options);
  const Network network = choose_network({.device = options.device, .address = options.address});
  std::unique_ptr<VerbsTransport> transport = listen_on(network, members);
  const VerbsTransport* const made_transport = transport.get();
  return {.network = std::move(transport),
          .rendezvous = rendezvous::rendezvous_options(options),
          .place = place,
          .silence_timeout_ms = options.silence_ms(),
          .describe = describe(place, made_transport)};
}

std::unique_ptr<PendingEntry> begin_entry(const JoinOptions& options) {
  const Network network = choose_network({.device = options.device, .address = options.address});
  std::unique_ptr<VerbsTransport> transport = listen_on(network, 1);
  const VerbsTransport* const made_transport = transport.get();
  return std::make_unique<NetworkEntry>(
      NetworkEntry::Parts{.network = std::move(transport),
                          .timeout_ms = options.join_ms(),
                          .silence_timeout_ms = options.silence_ms(),
                          .describe = describe({}, made_transport)});
}

}  // namespace

/// The devices' addresses. Where the kernel has no device, libibverbs is not asked: it would
/// prepare the process for some.
std::vector<DeviceAddress> device_addresses() {
  std::error_code none;
  if (std::filesystem::directory_iterator("/sys/class/infiniband", none) ==
      std::filesystem::directory_iterator())
    return {};
  std::vector<DeviceAddress> all;
  try {
    for (const Place& place : list_places())
      all.push_back({place.device, place.address, place.in_software});
  } catch (const Error&) {
    return {};  // this kernel has no RDMA connections
  }
  return all;
}

stream::Offer offer(const JoinOptions& options, std::uint32_t members) {
  Network network = choose_network({.device = options.device, .address = options.address});
  network.atomics_by_processor = true;
  std::unique_ptr<VerbsTransport> transport = listen_on(network, members);
  std::string description = transport->description();
  return {.name = "verbs",
          .description = std::move(description),
          .network = std::make_unique<stream::FormingOver<VerbsTransport>>(std::move(transport))};
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
  std::vector<std::string> all;
  try {
    for (const Place& place : list_places()) all.push_back(place.device + " " + place.address);
  } catch (const Error& error) {
    return {error.what()};
  }
  return all;
}

}  // namespace

constinit const JoinableNetwork kNetwork{
    .begin_join = begin_join, .make_rendezvous = make_rendezvous, .devices = devices};

}  // namespace dunlin::verbs
