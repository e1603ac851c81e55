#include "fabric/ofi/provider.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

namespace dunlin::ofi {
namespace {

constexpr std::array kProviders{&kTcp};

/// What this fabric needs: connected endpoints with ordered messages; and what it can do for the
/// provider.
Info hints() {
  Info wanted(libfabric().dupinfo(nullptr));
  if (!wanted) throw Error("libfabric has no memory");
  wanted->caps = FI_MSG;
  wanted->mode = FI_CONTEXT | FI_CONTEXT2;
  wanted->ep_attr->type = FI_EP_MSG;
  wanted->tx_attr->msg_order = FI_ORDER_SAS;
  wanted->rx_attr->msg_order = FI_ORDER_SAS;
  wanted->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  wanted->domain_attr->threading = FI_THREAD_DOMAIN;
  return wanted;
}

char* copied(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));  // freed by fi_freeinfo
  if (copy == nullptr) throw Error("no memory");
  std::copy_n(text.c_str(), text.size() + 1, copy);
  return copy;
}

Info find(const Info& wanted, const std::string& address) {
  fi_info* found = nullptr;
  const char* const node = address.empty() ? nullptr : address.c_str();
  const int result = libfabric().getinfo(FI_VERSION(1, 17), node, nullptr,
                                         node == nullptr ? 0 : FI_SOURCE, wanted.get(), &found);
  if (result != 0 && result != -FI_ENODATA) checked(result, "asking libfabric for its networks");
  return Info(found);
}

std::string place_of(const fi_info& info) {
  return std::string(info.fabric_attr->prov_name) + ": " + info.domain_attr->name + " " +
         info.fabric_attr->name;
}

const Provider* known(const std::string& name) {
  const auto found = std::find_if(kProviders.begin(), kProviders.end(),
                                  [&](const Provider* p) { return p->name == name; });
  return found == kProviders.end() ? nullptr : *found;
}

[[noreturn]] void none_such(const Choice& choice, const std::string& address) {
  std::string text = "libfabric has no network of provider '" + choice.provider + "'";
  if (!choice.device.empty()) text += " with device '" + choice.device + "'";
  if (!address.empty()) text += " at address '" + address + "'";
  text += " and connected endpoints. This host has:";
  const std::vector<std::string> there = list_networks();
  if (there.empty()) text += " none";
  for (const std::string& network : there) text += "\n  " + network;
  throw Error(text);
}

}  // namespace

std::vector<std::string> list_networks() {
  std::vector<std::string> all;
  const Info found = find(hints(), {});
  for (const fi_info* info = found.get(); info != nullptr; info = info->next) {
    std::string place = place_of(*info);
    if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(std::move(place));
  }
  return all;
}

std::vector<std::string> list_unfit_networks() {
  std::map<std::string, bool> connects;  // by provider
  const Info all = find(Info(), {});
  for (const fi_info* info = all.get(); info != nullptr; info = info->next)
    connects[info->fabric_attr->prov_name] |= info->ep_attr->type == FI_EP_MSG;
  const Info fit = find(hints(), {});
  for (const fi_info* info = fit.get(); info != nullptr; info = info->next)
    connects.erase(info->fabric_attr->prov_name);
  std::vector<std::string> text;
  text.reserve(connects.size());
  for (const auto& [name, connected] : connects)
    text.push_back(name + (connected ? ": does not offer its connected endpoints as we need them"
                                     : ": has no connected endpoints"));
  return text;
}

std::string endpoint_address_text(const std::string& provider,
                                  std::span<const std::byte> endpoint_address) {
  const Provider* const found = known(provider);
  return found == nullptr ? std::string() : found->text_of(endpoint_address);
}

std::uint32_t count_on_this_host(const std::string& provider,
                                 std::span<const std::vector<std::byte>> endpoint_addresses,
                                 std::size_t ours) {
  const Provider* const found = known(provider);
  if (found == nullptr) return 1;
  return static_cast<std::uint32_t>(
      std::count_if(endpoint_addresses.begin(), endpoint_addresses.end(),
                    [&](const std::vector<std::byte>& endpoint_address) {
                      return found->same_host(endpoint_address, endpoint_addresses[ours]);
                    }));
}

Network choose_network(const Choice& choice) {
  const Info wanted = hints();
  wanted->fabric_attr->prov_name = copied(choice.provider);
  if (!choice.device.empty()) wanted->domain_attr->name = copied(choice.device);
  std::string address = choice.address;
  std::string why = "as asked";
  const Provider* const provider = known(choice.provider);
  if (address.empty() && choice.device.empty() && provider != nullptr) {
    rendezvous::LocalAddress local = provider->local_address(choice.rendezvous);
    address = std::move(local.text);
    why = std::move(local.why);
  }
  const Info found = find(wanted, address);
  const fi_info* chosen = found.get();
  // The provider may have chosen by the address alone.
  while (chosen != nullptr && !choice.device.empty() && chosen->domain_attr->name != choice.device)
    chosen = chosen->next;
  if (chosen == nullptr) none_such(choice, address);
  Network network;
  network.info.reset(libfabric().dupinfo(chosen));
  if (!network.info) throw Error("libfabric has no memory");
  network.description = "libfabric " + std::string(choice.provider) + " on " +
                        network.info->domain_attr->name +
                        (address.empty() ? "" : ", address " + address + " (" + why + ")");
  network.fills_in_order = provider != nullptr && provider->fills_in_order;
  return network;
}

}  // namespace dunlin::ofi
