#include "fabric/tcp/endpoint.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "fabric/rendezvous/address.hpp"
#include "fabric/rendezvous/local_address.hpp"

namespace dunlin::tcp {
namespace {

struct EndpointHead {
  std::array<char, 8> magic{'D', 'N', 'L', 'N', 'T', 'C', 'P', '1'};
  std::uint8_t encrypts = 0;
  std::array<std::uint8_t, 7> unused{};
};
static_assert(sizeof(EndpointHead) == 16);

/// How many calls may wait to be accepted, besides one for each member.
constexpr int kOtherCallers = 64;

/// Binds, listens, and notes the port. Returns 0, or errno.
int listen_on(Listener& listener, int backlog) {
  const SocketAddress& at = listener.at;
  Descriptor socket = new_stream_socket(at);
  checked(socket.get(), "socket");
  if (bind(socket.get(), at.generic(), at.bytes) != 0) return errno;
  checked(listen(socket.get(), backlog), "listen");
  listener.at = own_address_of(socket);
  listener.socket = std::move(socket);
  return 0;
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
  bool is_ipv4 = false;
  for (const NetworkInterface& one : list_interfaces()) {
    if (one.name != device || is_ipv4) continue;
    is_ipv4 = one.at.address.ss_family == AF_INET;
    if (found.empty() || is_ipv4) found = one.at.host();
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
  for (const NetworkInterface& one : list_interfaces())
    if (one.name == choice.device && one.at.host() == choice.address) return;
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
  if (text.size() < sizeof head) text = {};
  if (!text.empty()) std::memcpy(&head, text.data(), sizeof head);
  const auto at = text.empty() ? std::nullopt : ip_address_in(text.subspan(sizeof head));
  const bool known = at && head.magic == EndpointHead().magic && head.encrypts <= 1;
  if (!known)
    throw Error(who +
                " gives no address of the tcp fabric: do all members use the same fabric, and "
                "the same version of Dunlin?");
  return {.at = *at, .encrypts = head.encrypts == 1};
}

std::uint32_t count_on_this_host(std::span<const std::vector<std::byte>> endpoints,
                                 std::size_t ours) {
  const SocketAddress own = decode(endpoints[ours], "this member").at;
  return static_cast<std::uint32_t>(
      std::count_if(endpoints.begin(), endpoints.end(), [&](const std::vector<std::byte>& text) {
        return !text.empty() && same_host(decode(text, "a member").at, own);
      }));
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
  listener.at.set_port(0);  // the kernel chooses one
  if (const int error = listen_on(listener, kOtherCallers); error != 0)
    throw Error("listening again at " + listener.at.text() + " failed: " + error_text(error));
}

std::vector<std::string> list_networks() {
  std::vector<std::string> lines;
  for (const NetworkInterface& one : list_interfaces())
    lines.push_back(one.name + " " + one.at.host());
  return lines;
}

}  // namespace dunlin::tcp
