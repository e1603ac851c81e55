#include "fabric/rendezvous/local_address.hpp"

#include <array>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "fabric/rendezvous/address.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
// These addresses belong to no host, and so lie beyond every default route: RFC 5737, RFC 3849.
constexpr std::array kElsewhere{"192.0.2.1", "2001:db8::1"};
constexpr const char* kDiscardPort = "9";

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList look_up(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

std::string number_of(const sockaddr* address, socklen_t bytes) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

/// The address that the kernel would send from; connecting a datagram socket sends nothing.
std::string source_towards(const addrinfo& target) {
  const Descriptor probe(socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.get(), target.ai_addr, target.ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  auto* const generic = reinterpret_cast<sockaddr*>(&own);
  if (getsockname(probe.get(), generic, &bytes) != 0) return {};
  return number_of(generic, bytes);
}

std::string first_interface() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(all, &freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (up && one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      return number_of(one->ifa_addr, sizeof(sockaddr_in));
  }
  return {};
}

/// The address of a host that may have several: that from which its default route leaves, or that
/// of its first interface.
std::string outward_address() {
  for (const char* elsewhere : kElsewhere) {
    const AddressList list = look_up(elsewhere, kDiscardPort);
    std::string source = list ? source_towards(*list) : std::string();
    if (!source.empty() && !means_loopback(source)) return source;
  }
  return first_interface();
}

}  // namespace

LocalAddress local_address(const std::string& rendezvous) {
  const Address address = parse_address(rendezvous);
  if (address.is_unix())
    return {kLoopback, "as all who meet at " + rendezvous + " are on this host"};
  std::string loopback;
  const AddressList list = look_up(address.host, address.port);
  for (const addrinfo* next = list.get(); next != nullptr; next = next->ai_next) {
    const std::string source = source_towards(*next);
    if (source.empty()) continue;
    if (!means_loopback(source) || means_loopback(address.host))
      return {source, "from which " + rendezvous + " is reached"};
    loopback = source;
  }
  if (loopback.empty()) return {};
  const std::string why = "as '" + address.host + "' means this host's loopback here";
  const std::string outward = outward_address();
  if (outward.empty()) return {loopback, why + ", and there is no other"};
  return {outward, why + ", and others may not reach that"};
}

}  // namespace dunlin::rendezvous
