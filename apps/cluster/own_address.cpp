#include "cluster/own_address.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

std::string addresses_of_this_host() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "nobody knows which";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(all, &freeifaddrs);
  std::string text;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> number{};
    if (getnameinfo(one->ifa_addr, bytes, number.data(), number.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", number.data(), one->ifa_name);
  }
  return text.empty() ? "none, as no device is up" : text;
}

/// Whether a link-local address does not say of which link.
bool lacks_its_device(const addrinfo& found) {
  if (found.ai_family != AF_INET6) return false;
  sockaddr_in6 address{};
  std::memcpy(&address, found.ai_addr, sizeof address);
  return IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr) && address.sin6_scope_id == 0;
}

}  // namespace

void demand_own_address(const std::string& option, const std::string& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &wanted, &found) != 0) {
    throw BadInput(fmt::format("{} {}: not an address such as 10.0.0.7 or fd00::7", option,
                               in_quotes(address)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  if (lacks_its_device(*found)) {
    throw BadInput(fmt::format("{} {}: every device has such an address: say which, as in {}%eth0",
                               option, in_quotes(address), address));
  }
  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return;
  const bool own = bind(probe, found->ai_addr, found->ai_addrlen) == 0 || errno != EADDRNOTAVAIL;
  close(probe);
  if (own) return;
  throw BadInput(fmt::format("{} {}: not an address of this host, which has {}", option,
                             in_quotes(address), addresses_of_this_host()));
}

}  // namespace dunlin::app
