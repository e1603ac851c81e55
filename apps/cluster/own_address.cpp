#include "cluster/own_address.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include "command.hpp"
#include "fabric/socket_address.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

std::string addresses_of_this_host() {
  std::string text;
  for (const NetworkInterface& one : list_interfaces())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.at.host(), one.name);
  return text.empty() ? "none, as no device is up" : text;
}

/// Whether a link-local address does not say of which link.
bool lacks_its_device(const SocketAddress& at) {
  const auto& six = reinterpret_cast<const sockaddr_in6&>(at.address);
  return at.address.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr) &&
         six.sin6_scope_id == 0;
}

}  // namespace

void demand_own_address(const std::string& option, const std::string& address) {
  std::string fault;
  const auto found = find_addresses(address, "0", AI_NUMERICHOST, fault);
  if (found.empty()) {
    throw BadInput(fmt::format("{} {}: not an address such as 10.0.0.7 or fd00::7", option,
                               in_quotes(address)));
  }
  const SocketAddress& at = found.front();
  if (lacks_its_device(at)) {
    throw BadInput(fmt::format("{} {}: every device has such an address: say which, as in {}%eth0",
                               option, in_quotes(address), address));
  }
  const Descriptor probe = new_stream_socket(at);
  if (!probe || bind(probe.get(), at.generic(), at.bytes) == 0 || errno != EADDRNOTAVAIL) return;
  throw BadInput(fmt::format("{} {}: not an address of this host, which has {}", option,
                             in_quotes(address), addresses_of_this_host()));
}

}  // namespace dunlin::app
