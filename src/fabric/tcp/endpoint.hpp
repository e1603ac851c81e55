#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/socket_address.hpp"

/// Where a member listens for its peers, and the endpoint address that it gives at the rendezvous:
/// docs/formats/stream.md, "Over TCP".
namespace dunlin::tcp {

struct Endpoint {
  SocketAddress at = {};
  bool encrypts = false;
};

[[nodiscard]] std::vector<std::byte> encode(const Endpoint& endpoint);
/// Decodes another member's endpoint. Throws Error, with `who` in it, if the text is no endpoint of
/// this fabric.
[[nodiscard]] Endpoint decode(std::span<const std::byte> text, const std::string& who);

/// How many of the endpoints are on the host of endpoint `ours`, which counts, too; ranks without a
/// member have an empty endpoint.
[[nodiscard]] std::uint32_t count_on_this_host(std::span<const std::vector<std::byte>> endpoints,
                                               std::size_t ours);

/// The requested network, as in JoinOptions.
struct Choice {
  std::string device;   // an interface; empty: any
  std::string address;  // empty: from which the rendezvous is reached
  std::string rendezvous;
};
struct Listener {
  Descriptor socket;
  SocketAddress at;
  std::string why;  // "10.0.0.7:40112, from which 10.0.0.1:7700 is reached"
};
/// Listens at a port that the kernel chooses, for so many peers. If the address or interface does
/// not exist, throws Error that names it, and lists those that do.
[[nodiscard]] Listener listen_at(const Choice& choice, std::uint32_t members);
/// Listens at another port of the same address, once no member listens at the former one any more.
void listen_again(Listener& listener);

/// The addresses of all interfaces that are up: "eth0 10.0.0.7".
[[nodiscard]] std::vector<std::string> list_networks();

}  // namespace dunlin::tcp
