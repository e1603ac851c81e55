#include <algorithm>

#include <dunlin/fabric/verbs.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/stream/joining.hpp"
#include "fabric/stream/meeting_place.hpp"
#include "fabric/verbs/verbs_transport.hpp"

namespace dunlin::verbs {
namespace {

using Joining = stream::Joining<VerbsTransport>;

std::unique_ptr<VerbsTransport> listen_on(const Network& network, std::uint32_t members) {
  try {
    return std::make_unique<VerbsTransport>(network, members);
  } catch (const Error& error) {
    throw Error("verbs on " + network.place.device + ", address " + network.place.address + ": " +
                error.what());
  }
}

Joining::Parts parts(const JoinOptions& given) {
  JoinOptions options = given;
  const std::string place = launch::complete(options);
  const std::uint32_t members = meeting::count_members(options);
  const Network network = choose_network({.device = options.device, .address = options.address});
  std::unique_ptr<VerbsTransport> transport = listen_on(network, members);
  const VerbsTransport* const made_transport = transport.get();
  return {.network = std::move(transport),
          .meeting = meeting::meeting_of(options),
          .place = place,
          .silence_timeout_ms = options.silence_timeout_ms,
          .describe = [place, made_transport](stream::Attachment& made,
                                              const meeting::Introductions& all) {
            const auto here = std::count_if(all.cards.begin(), all.cards.end(),
                                            [&](const std::vector<std::byte>& card) {
                                              return same_host(card, all.cards[made.rank]);
                                            });
            made.kind = "verbs";
            made.description = made_transport->description() + (place.empty() ? "" : "; " + place);
            made.host_members = static_cast<std::uint32_t>(here);
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
