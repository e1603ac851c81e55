#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/shm/address.hpp"

/// Decides with which members a process can share memory. docs/mixed.md gives MIX-H1 and MIX-H2,
/// and docs/formats/mixed-endpoint.md the bytes.
///  MIX-H1  Two members share memory if each of them can, both are of one boot of one kernel and in
///      the same namespaces (network, process, user), their user is the same, and the listener of
///      each answers the other. Each finds the same.
///  MIX-H2  A member listens before it announces itself to any other, and until its fabric is gone.
namespace dunlin::mixed {

/// A member's description of its host.
struct Host {
  std::array<std::byte, 16> boot{};  // random: the kernel's own, since its start
  std::uint64_t network_namespace = 0;
  std::uint64_t process_namespace = 0;
  std::uint64_t user_namespace = 0;
  std::uint64_t listener = 0;  // a random number in the listener's name; 0: none
  std::uint32_t user = 0;
  bool shares = false;
};

/// How a network reaches a member.
struct NetworkEndpoint {
  std::string network;  // "tcp"
  std::vector<std::byte> endpoint;
};
inline constexpr std::size_t kMaxNetworkNameBytes = 7;

/// The bytes that a member gives the others.
struct Endpoint {
  Host host;
  std::vector<NetworkEndpoint> networks;

  /// The member's endpoint in that network; null if the network does not reach the member.
  [[nodiscard]] const NetworkEndpoint* find(std::string_view network) const noexcept;
};
[[nodiscard]] std::vector<std::byte> encode(const Endpoint& endpoint);
/// Decodes an endpoint; none if the bytes are no endpoint.
[[nodiscard]] std::optional<Endpoint> decode(std::span<const std::byte> bytes);

/// This process, and its listener.
class OwnHost {
 public:
  /// `pretended` takes the place of the kernel's boot, for tests that need several hosts.
  explicit OwnHost(std::string_view pretended = {});

  [[nodiscard]] const Host& host() const noexcept { return host_; }
  /// A text that says why it cannot share memory; empty if it can.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  [[nodiscard]] const shm::Access& access() const noexcept { return access_; }
  [[nodiscard]] shm::Descriptor take_listener() noexcept { return std::move(listener_); }
  /// The address of a member on this host.
  [[nodiscard]] shm::Address address_of(const Host& other) const;

 private:
  [[nodiscard]] std::string try_to_share();

  Host host_;
  shm::Access access_;
  shm::Descriptor listener_;
  std::string fault_;
};

/// Whether a peer is reached through shared memory, and why, or why not.
struct Way {
  bool here = false;
  std::string why;
};
[[nodiscard]] Way way_to(const OwnHost& own, const Host& other);
/// Compares the descriptions of the two hosts, before any socket is asked.
[[nodiscard]] Way compare(const Host& own, const Host& other);

}  // namespace dunlin::mixed
