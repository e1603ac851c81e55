#include "cluster/own_address.hpp"

#include <array>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
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
  const int probe = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return;
  const bool own = bind(probe, found->ai_addr, found->ai_addrlen) == 0 || errno != EADDRNOTAVAIL;
  close(probe);
  if (own) return;
  throw BadInput(fmt::format("{} {}: not an address of this host, which has {}", option,
                             in_quotes(address), addresses_of_this_host()));
}

}  // namespace dunlin::app
