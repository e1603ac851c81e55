#include "cluster/agreement.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include <dunlin/error.hpp>

#include "command.hpp"
#include "fabric/rendezvous/address.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

constexpr std::size_t kMostColumns = 400;

/// A hash of all of it, and so much of the text as fits.
std::vector<std::byte> endpoint_address_of(const Intent& intent) {
  const std::size_t text_bytes =
      std::min(intent.text.size(), rendezvous::kMaxEndpointAddressBytes - sizeof intent.hash);
  std::vector<std::byte> endpoint_address(sizeof intent.hash + text_bytes);
  std::memcpy(endpoint_address.data(), &intent.hash, sizeof intent.hash);
  std::memcpy(endpoint_address.data() + sizeof intent.hash, intent.text.data(), text_bytes);
  return endpoint_address;
}

std::string text_of(const std::vector<std::byte>& endpoint_address) {
  std::string text;
  for (std::size_t i = sizeof(Intent::hash); i < endpoint_address.size(); ++i) {
    text += static_cast<char>(endpoint_address[i]);
  }
  return printable(text, kMostColumns);
}

rendezvous::Options options_of(const Party& party, const std::string& group) {
  return {.address = party.rendezvous,
          .secret = party.secret,
          .tls = party.tls,
          .group = group,
          .members = party.hosts,
          .rank = party.host,
          .timeout_ms = party.timeout_ms,
          .all_must_fit = true};
}

}  // namespace

void check(const Party& party) {
  try {
    static_cast<void>(rendezvous::parse_address(party.rendezvous));
  } catch (const Error& error) {
    throw BadInput(fmt::format("{}: {}", party.rendezvous_option, error.what()));
  }
  rendezvous::check(options_of(party, "dunlin"));
}

void agree(const Party& party, const Intent& intent) {
  const std::vector<std::byte> own = endpoint_address_of(intent);
  rendezvous::Roster roster;
  try {
    roster = rendezvous::meet(options_of(party, "dunlin-" + intent.what), own);
  } catch (const rendezvous::Refused& error) {
    throw BadInput(
        fmt::format("{}; members are hosts here, of which --hosts says the number and "
                    "--host the rank",
                    error.what()));
  }
  const std::vector<std::byte>& first = roster.members.front().endpoint_address;
  for (std::size_t host = 1; host < roster.members.size(); ++host) {
    const std::vector<std::byte>& other = roster.members[host].endpoint_address;
    if (other == first) continue;
    const std::string detail = ", with other " + intent.besides;
    throw BadInput(fmt::format("the hosts have different plans: host 0 has {}, host {} has {}{}",
                               text_of(first), host, text_of(other),
                               text_of(first) == text_of(other) ? detail : ""));
  }
}

}  // namespace dunlin::app
