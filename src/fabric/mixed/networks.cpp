#include "fabric/mixed/networks.hpp"

#include <algorithm>
#include <utility>

#include "fabric/ofi/offer.hpp"
#include "fabric/tcp/offer.hpp"

namespace dunlin::mixed {
namespace {

[[nodiscard]] stream::Offer make_offer(const NetworkPlan& plan, std::uint32_t members) {
  switch (plan.kind) {
    case NetworkPlan::Kind::verbs:
      return verbs::offer(plan.options, members);
    case NetworkPlan::Kind::ofi:
      return ofi::offer(plan.options, members);
    case NetworkPlan::Kind::tcp:
      break;
  }
  return tcp::offer(plan.options, members);
}

}  // namespace

std::vector<NetworkPlan> plan_networks(const JoinOptions& options,
                                       std::span<const verbs::DeviceAddress> devices) {
  using Kind = NetworkPlan::Kind;
  if (!options.provider.empty()) return {{.kind = Kind::ofi, .options = options}};
  if (options.encrypt) return {{.kind = Kind::tcp, .options = options}};
  const auto named = [&](const verbs::DeviceAddress& one) { return one.device == options.device; };
  if (std::ranges::any_of(devices, named)) return {{.kind = Kind::verbs, .options = options}};
  std::vector<NetworkPlan> plans;
  const auto fits = [&](const verbs::DeviceAddress& one) {
    return !one.in_software && options.device.empty() &&
           (options.address.empty() || one.address == options.address);
  };
  if (const auto hardware = std::ranges::find_if(devices, fits); hardware != devices.end()) {
    NetworkPlan plan{.kind = Kind::verbs, .options = options, .optional = true};
    plan.options.device = hardware->device;
    plan.options.address = hardware->address;
    plans.push_back(std::move(plan));
  }
  plans.push_back({.kind = Kind::tcp, .options = options});
  return plans;
}

Offers make_offers(const JoinOptions& options, std::uint32_t members) {
  Offers offers;
  for (const NetworkPlan& plan : plan_networks(options, verbs::device_addresses())) {
    try {
      offers.all.push_back(make_offer(plan, members));
    } catch (const Error& error) {
      if (!plan.optional) throw;
      offers.failed = error.what();
    }
  }
  return offers;
}

std::optional<std::size_t> choose_network(std::span<const stream::Offer> offers,
                                          std::span<const Endpoint> members) {
  const auto all_have = [&](const stream::Offer& offer) {
    return std::ranges::all_of(
        members, [&](const Endpoint& member) { return member.find(offer.name) != nullptr; });
  };
  const auto found = std::ranges::find_if(offers, all_have);
  if (found == offers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - offers.begin());
}

std::string names_of(std::span<const NetworkEndpoint> networks) {
  std::string text;
  for (const NetworkEndpoint& network : networks)
    text += (text.empty() ? "" : " or ") + network.network;
  return text.empty() ? "no network" : text;
}

}  // namespace dunlin::mixed
