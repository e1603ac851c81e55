#include "fabric/rendezvous/local_address.hpp"

#include <array>
#include <vector>

#include "fabric/rendezvous/address.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
// These addresses belong to no host, and so lie beyond every default route: RFC 5737, RFC 3849.
constexpr std::array kElsewhere{"192.0.2.1", "2001:db8::1"};
constexpr const char* kDiscardPort = "9";

std::vector<SocketAddress> look_up(const std::string& host, const std::string& port) {
  std::string fault;
  return find_addresses(host, port, 0, fault);
}

/// The address that the kernel would send from; connecting a datagram socket sends nothing.
std::string source_towards(const SocketAddress& target) {
  const Descriptor probe(socket(target.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.get(), target.generic(), target.bytes) != 0) return {};
  return own_address_of(probe).host();
}

std::string first_interface() {
  for (const NetworkInterface& one : list_interfaces())
    if (!one.is_loopback && one.at.address.ss_family == AF_INET) return one.at.host();
  return {};
}

/// The address of a host that may have several: that from which its default route leaves, or that
/// of its first interface.
std::string outward_address() {
  for (const char* elsewhere : kElsewhere) {
    const std::vector<SocketAddress> found = look_up(elsewhere, kDiscardPort);
    std::string source = found.empty() ? std::string() : source_towards(found.front());
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
  for (const SocketAddress& target : look_up(address.host, address.port)) {
    const std::string source = source_towards(target);
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
