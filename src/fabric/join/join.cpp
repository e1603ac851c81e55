#include <algorithm>
#include <array>
#include <utility>

#include <dunlin/join.hpp>

#include "fabric/join/network.hpp"
#include "fabric/join/options.hpp"
#include "fabric/launch/complete.hpp"

namespace dunlin {
namespace {

/// A further network is a line here, and its implementation a line of kBackends.
constexpr std::array kNetworks{
    Network{.name = "shm",
            .about = "processes of this host",
            .between_hosts = false,
            .encrypts = false,
            .has_providers = false},
    Network{.name = "tcp",
            .about = "between hosts",
            .between_hosts = true,
            .encrypts = true,
            .has_providers = false},
    Network{.name = "auto",
            .about = "shm within each host, verbs or tcp between them",
            .between_hosts = true,
            .encrypts = true,
            .has_providers = true},
    Network{.name = "verbs",
            .about = "over RDMA devices",
            .between_hosts = true,
            .encrypts = false,
            .has_providers = false},
    Network{.name = "ofi",
            .about = "over libfabric's networks",
            .between_hosts = true,
            .encrypts = false,
            .has_providers = true},
};
constexpr std::array<const JoinableNetwork*, kNetworks.size()> kBackends{
    &shm::kNetwork, &tcp::kNetwork, &mixed::kNetwork, &verbs::kNetwork, &ofi::kNetwork};

const JoinableNetwork& backend_of(std::string_view network) {
  return *kBackends[static_cast<std::size_t>(&network_of(network) - kNetworks.data())];
}

/// Throws Error if this build does not have the network.
const JoinableNetwork& present_backend_of(std::string_view network) {
  const JoinableNetwork& backend = backend_of(network);
  if (!backend.missing.empty()) throw Error(std::string(backend.missing));
  return backend;
}

/// Throws Error unless the network, which is now known, honours all options.
void check(const JoinOptions& options) {
  const JoinOption* const option = unfit(options, network_of(options.network));
  if (option == nullptr) return;
  throw Error("group '" + options.group + "': the network " + options.network +
              " cannot honour the option `" + std::string(option->name) +
              "`: " + std::string(lack_of(option->needs)) + "; join over " +
              networks_with(option->needs) + ", or leave it out");
}

std::unique_ptr<SteppedJoin> begin(JoinOptions options) {
  if (options.network.empty()) options.network = launch::network_name();
  check(options);
  const JoinableNetwork& backend = present_backend_of(options.network);
  const std::string place = launch::complete(options, network_of(options.network).between_hosts);
  check(options);
  return backend.begin_join(options, place);
}

}  // namespace

std::span<const Network> networks() noexcept { return kNetworks; }

const Network& network_of(std::string_view name) {
  const auto found = std::ranges::find(kNetworks, name, &Network::name);
  if (found != kNetworks.end()) return *found;
  std::string known;
  for (const Network& one : kNetworks) known += (known.empty() ? "" : ", ") + std::string(one.name);
  throw Error("there is no network '" + std::string(name) + "'; there are " + known);
}

std::vector<std::string> devices_of(std::string_view network) {
  const JoinableNetwork& backend = backend_of(network);
  if (!backend.missing.empty()) return {std::string(backend.missing)};
  return backend.devices == nullptr ? std::vector<std::string>() : backend.devices();
}

std::vector<std::string> unfit_devices_of(std::string_view network) {
  const JoinableNetwork& backend = backend_of(network);
  return backend.unfit_devices == nullptr ? std::vector<std::string>() : backend.unfit_devices();
}

std::unique_ptr<Fabric> join(const JoinOptions& options) { return begin(options)->run(); }

std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options) { return begin(options); }

std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& given,
                                            std::vector<std::string> contacts) {
  JoinOptions options = given;
  if (options.network.empty()) options.network = launch::network_name();
  check(options);
  const JoinableNetwork& backend = present_backend_of(options.network);
  launch::complete_reach(options, network_of(options.network).between_hosts);
  check(options);
  return backend.make_rendezvous(options, std::move(contacts));
}

}  // namespace dunlin
