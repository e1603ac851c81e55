#include <dunlin/fabric/tcp.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/stream/network_join.hpp"
#include "fabric/stream/network_rendezvous.hpp"
#include "fabric/tcp/tcp_transport.hpp"

namespace dunlin::tcp {
namespace {

using NetworkJoin = stream::NetworkJoin<TcpTransport>;

/// The standard streams, libraries, a rendezvous, a log.
constexpr std::uint64_t kOtherDescriptors = 64;

NetworkJoin::Parts parts(const JoinOptions& given) {
  JoinOptions options = given;
  if (!options.provider.empty())
    throw Error("tcp has no providers: leave `provider` empty, or join '" + options.provider +
                "' over ofi");
  std::string place = launch::complete(options);
  const std::uint32_t members = rendezvous::count_members(options);
  ensure_descriptors(members + kOtherDescriptors, 2 * members + kMaxStrangers + kOtherDescriptors,
                     members);
  Listener listener = listen_at(
      {.device = options.device, .address = options.address, .rendezvous = options.rendezvous},
      members);
  const std::string description = std::string(options.encrypt ? "tcp, encrypted, at " : "tcp at ") +
                                  listener.why + (place.empty() ? std::string() : "; " + place);
  return {
      .network =
          std::make_unique<TcpTransport>(Connector(std::move(listener), options.encrypt), members),
      .rendezvous = rendezvous::rendezvous_options(options),
      .place = std::move(place),
      .silence_timeout_ms = options.silence_timeout_ms,
      .describe = [description](stream::Attachment& made, const rendezvous::PeerEndpoints& all) {
        made.kind = "tcp";
        made.description = description;
        made.host_members = count_on_this_host(all.endpoint_addresses, made.rank);
      }};
}

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& options) {
  return NetworkJoin(parts(options)).run();
}

std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options) {
  return std::make_unique<NetworkJoin>(parts(options));
}

std::shared_ptr<Rendezvous> rendezvous(JoinOptions options, std::vector<std::string> addresses) {
  return std::make_shared<stream::NetworkRendezvous>(std::move(options), std::move(addresses),
                                                     begin_join);
}

std::vector<std::string> networks() { return list_networks(); }

}  // namespace dunlin::tcp
