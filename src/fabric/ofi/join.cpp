#include <dunlin/fabric/ofi.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/ofi/ofi_transport.hpp"
#include "fabric/ofi/provider.hpp"
#include "fabric/stream/joining.hpp"
#include "fabric/stream/meeting_place.hpp"

namespace dunlin::ofi {
namespace {

using Joining = stream::Joining<OfiTransport>;

std::unique_ptr<OfiTransport> listen_on(Network& network, std::uint32_t members) {
  try {
    return std::make_unique<OfiTransport>(network, members);
  } catch (const Error& error) {
    throw Error(network.description + ": " + error.what());
  }
}

Joining::Parts parts(const JoinOptions& given) {
  JoinOptions options = given;
  std::string place = launch::complete(options);
  const std::uint32_t members = meeting::count_members(options);
  Network network = choose_network({.provider = options.provider,
                                    .device = options.device,
                                    .address = options.address,
                                    .meeting = options.meeting});
  std::unique_ptr<OfiTransport> transport = listen_on(network, members);
  const std::string description =
      network.description + (place.empty() ? std::string() : "; " + place);
  return {.network = std::move(transport),
          .meeting = meeting::meeting_of(options),
          .place = std::move(place),
          .silence_timeout_ms = options.silence_timeout_ms,
          .describe = [description, provider = options.provider](
                          stream::Attachment& made, const meeting::Introductions& all) {
            made.kind = "ofi";
            made.description = description;
            made.host_members = count_on_this_host(provider, all.cards, made.rank);
          }};
}

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions& options) { return Joining(parts(options)).run(); }

std::unique_ptr<Formation> begin_join(const JoinOptions& options) {
  return std::make_unique<Joining>(parts(options));
}

std::shared_ptr<MeetingPlace> meeting_place(JoinOptions options, std::vector<std::string> doors) {
  return std::make_shared<stream::StreamMeetingPlace<JoinOptions>>(std::move(options),
                                                                   std::move(doors), begin_join);
}

std::vector<std::string> networks() {
  return why_not_loaded().empty() ? list_networks() : std::vector<std::string>();
}

std::vector<std::string> unfit_networks() {
  const std::string why = why_not_loaded();
  return why.empty() ? list_unfit_networks() : std::vector{"libfabric: " + why};
}

}  // namespace dunlin::ofi
