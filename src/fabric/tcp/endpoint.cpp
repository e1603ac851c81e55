#include "fabric/tcp/endpoint.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/rendezvous/local_address.hpp"

namespace dunlin::tcp {
namespace {

using rendezvous::SocketAddress;

struct EndpointHead {
  std::array<char, 8> magic{'D', 'N', 'L', 'N', 'T', 'C', 'P', '1'};
  std::uint8_t encrypts = 0;
  std::array<std::uint8_t, 7> unused{};
};
static_assert(sizeof(EndpointHead) == 16);

/// How many calls may wait to be accepted, besides one for each member.
constexpr int kOtherCallers = 64;

socklen_t address_bytes(sa_family_t family) noexcept {
  if (family == AF_INET) return sizeof(sockaddr_in);
  return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

/// Sets the port to 0, so that the kernel chooses it.
void forget_port(SocketAddress& at) noexcept {
  if (at.address.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in&>(at.address).sin_port = 0;
  else
    reinterpret_cast<sockaddr_in6&>(at.address).sin6_port = 0;
}

/// Binds, listens, and notes the port. Returns 0, or errno.
int listen_on(Listener& listener, int backlog) {
  SocketAddress& at = listener.at;
  Descriptor socket(checked(
      ::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  if (bind(socket.get(), at.generic(), at.bytes) != 0) return errno;
  checked(listen(socket.get(), backlog), "listen");
  at.bytes = sizeof at.address;
  checked(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at.address), &at.bytes),
          "getsockname");
  listener.socket = std::move(socket);
  return 0;
}

/// The bytes of the host's address, without the port.
std::span<const std::byte> host_of(const SocketAddress& at) noexcept {
  if (at.address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(at.address).sin_addr;
    return std::as_bytes(std::span(&four, 1));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(at.address).sin6_addr;
  return std::as_bytes(std::span(&six, 1));
}

struct Interface {
  std::string name;
  std::string address;
};

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0 || one->ifa_addr == nullptr) continue;
    SocketAddress at;
    at.bytes = address_bytes(one->ifa_addr->sa_family);
    if (at.bytes == 0) continue;
    std::memcpy(&at.address, one->ifa_addr, at.bytes);
    const std::string text = at.text();  // with port 0
    std::string host = text.substr(0, text.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    found.push_back({one->ifa_name, host});
  }
  return found;
}

[[noreturn]] void throw_not_here(const std::string& what) {
  std::string text = what + ". This host has:";
  for (const std::string& network : list_networks()) text += "\n  " + network;
  throw Error(text);
}

struct Place {
  std::string address;
  std::string why;
};

/// The address of an interface; IPv4 comes first, where an interface has both.
Place place_on(const std::string& device) {
  std::string found;
  for (const Interface& one : interfaces()) {
    if (one.name != device) continue;
    const bool is_first = found.empty() || (found.find(':') != std::string::npos &&
                                            one.address.find(':') == std::string::npos);
    if (is_first) found = one.address;
  }
  if (found.empty())
    throw_not_here("there is no interface '" + device + "' that is up and has an address");
  return {found, "on " + device};
}

Place choose(const Choice& choice) {
  if (!choice.address.empty()) return {choice.address, "which was asked for"};
  if (!choice.device.empty()) return place_on(choice.device);
  rendezvous::LocalAddress local = rendezvous::local_address(choice.rendezvous);
  if (local.text.empty())
    throw_not_here("no address of this host reaches the rendezvous " + choice.rendezvous +
                   ": give JoinOptions::address");
  return {std::move(local.text), std::move(local.why)};
}

void check_on_device(const Choice& choice) {
  if (choice.device.empty() || choice.address.empty()) return;
  for (const Interface& one : interfaces())
    if (one.name == choice.device && one.address == choice.address) return;
  throw_not_here("the interface '" + choice.device + "' does not have the address " +
                 choice.address);
}

}  // namespace

std::vector<std::byte> encode(const Endpoint& endpoint) {
  const EndpointHead head{.encrypts = endpoint.encrypts ? std::uint8_t{1} : std::uint8_t{0}};
  std::vector<std::byte> text(sizeof head + endpoint.at.bytes);
  std::memcpy(text.data(), &head, sizeof head);
  std::memcpy(text.data() + sizeof head, &endpoint.at.address, endpoint.at.bytes);
  return text;
}

Endpoint decode(std::span<const std::byte> text, const std::string& who) {
  EndpointHead head;
  Endpoint endpoint;
  const bool fits = text.size() >= sizeof head + sizeof(sa_family_t) &&
                    text.size() <= sizeof head + sizeof endpoint.at.address;
  if (fits) {
    std::memcpy(&head, text.data(), sizeof head);
    endpoint.encrypts = head.encrypts == 1;
    endpoint.at.bytes = static_cast<socklen_t>(text.size() - sizeof head);
    std::memcpy(&endpoint.at.address, text.data() + sizeof head, endpoint.at.bytes);
  }
  const bool known = fits && head.magic == EndpointHead().magic && head.encrypts <= 1 &&
                     endpoint.at.bytes == address_bytes(endpoint.at.address.ss_family);
  if (!known)
    throw Error(who +
                " gives no address of the tcp fabric: do all members use the same fabric, and "
                "the same version of Dunlin?");
  return endpoint;
}

std::uint32_t count_on_this_host(std::span<const std::vector<std::byte>> endpoints,
                                 std::size_t ours) {
  const SocketAddress own = decode(endpoints[ours], "this member").at;
  return static_cast<std::uint32_t>(
      std::count_if(endpoints.begin(), endpoints.end(), [&](const std::vector<std::byte>& text) {
        return !text.empty() && same_host(decode(text, "a member").at, own);
      }));
}

bool same_host(const SocketAddress& one, const SocketAddress& other) noexcept {
  return one.address.ss_family == other.address.ss_family &&
         std::ranges::equal(host_of(one), host_of(other));
}

Listener listen_at(const Choice& choice, std::uint32_t members) {
  check_on_device(choice);
  const Place place = choose(choice);
  std::string fault;
  const std::vector<SocketAddress> targets = rendezvous::resolve(
      {.text = place.address, .unix_name = {}, .host = place.address, .port = "0"}, fault);
  if (targets.empty()) throw Error("the address '" + place.address + "' cannot be used: " + fault);
  Listener listener{
      .socket = Descriptor(), .at = targets.front(), .why = place.address + ", " + place.why};
  if (const int error = listen_on(listener, static_cast<int>(members) + kOtherCallers); error != 0)
    throw_not_here("this host cannot listen at " + place.address + " (" + error_text(error) + ")");
  return listener;
}

void listen_again(Listener& listener) {
  forget_port(listener.at);
  if (const int error = listen_on(listener, kOtherCallers); error != 0)
    throw Error("listening again at " + listener.at.text() + " failed: " + error_text(error));
}

std::vector<std::string> list_networks() {
  std::vector<std::string> lines;
  for (const Interface& one : interfaces()) lines.push_back(one.name + " " + one.address);
  return lines;
}

}  // namespace dunlin::tcp
