#include "fabric/join/network.hpp"
#include "fabric/stream/network_entry.hpp"
#include "fabric/stream/network_join.hpp"
#include "fabric/stream/network_rendezvous.hpp"
#include "fabric/tcp/offer.hpp"
#include "fabric/tcp/tcp_transport.hpp"

namespace dunlin::tcp {
namespace {

using NetworkJoin = stream::NetworkJoin<TcpTransport>;
using NetworkEntry = stream::NetworkEntry<TcpTransport>;

/// Descriptors for the standard streams, libraries, a rendezvous, a log.
constexpr std::uint64_t kOtherDescriptors = 64;

Listener listener_for(const JoinOptions& options, std::uint32_t members) {
  ensure_descriptors(members + kOtherDescriptors, 2 * members + kMaxStrangers + kOtherDescriptors,
                     members);
  return listen_at(
      {.device = options.device, .address = options.address, .rendezvous = options.rendezvous},
      members);
}

std::string text_of(const JoinOptions& options, const Listener& listener) {
  return (options.encrypt ? "tcp, encrypted, at " : "tcp at ") + listener.why;
}

stream::Describe describe(const JoinOptions& options, const Listener& listener,
                          const std::string& place) {
  const std::string description =
      text_of(options, listener) + (place.empty() ? std::string() : "; " + place);
  return [description](stream::Attachment& made, const rendezvous::PeerEndpoints& all) {
    made.kind = "tcp";
    made.description = description;
    made.host_members = count_on_this_host(all.endpoint_addresses, made.rank);
  };
}

NetworkJoin::Parts parts(const JoinOptions& options, const std::string& place) {
  const std::uint32_t members = rendezvous::count_members(options);
  Listener listener = listener_for(options, members);
  stream::Describe description = describe(options, listener, place);
  return {.network = std::make_unique<TcpTransport>(Connector(std::move(listener), options.encrypt),
                                                    members),
          .rendezvous = rendezvous::rendezvous_options(options),
          .place = place,
          .silence_timeout_ms = options.silence_ms(),
          .describe = std::move(description)};
}

std::unique_ptr<PendingEntry> begin_entry(const JoinOptions& options) {
  Listener listener = listener_for(options, 1);
  stream::Describe description = describe(options, listener, {});
  return std::make_unique<NetworkEntry>(NetworkEntry::Parts{
      .network = std::make_unique<TcpTransport>(Connector(std::move(listener), options.encrypt), 1),
      .timeout_ms = options.join_ms(),
      .silence_timeout_ms = options.silence_ms(),
      .describe = std::move(description)});
}

}  // namespace

stream::Offer offer(const JoinOptions& options, std::uint32_t members) {
  Listener listener = listener_for(options, members);
  std::string description = text_of(options, listener);
  auto transport =
      std::make_unique<TcpTransport>(Connector(std::move(listener), options.encrypt), members);
  return {.name = "tcp",
          .description = std::move(description),
          .network = std::make_unique<stream::FormingOver<TcpTransport>>(std::move(transport))};
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

}  // namespace

constinit const JoinableNetwork kNetwork{
    .begin_join = begin_join, .make_rendezvous = make_rendezvous, .devices = list_networks};

}  // namespace dunlin::tcp
