#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric/tls.hpp>

namespace dunlin {

/// How a member joins a group over a network, by whichever fabric (tcp, ofi, verbs).
///
/// If group, members or names (with rank or name), rendezvous, secret, tls or address is empty,
/// join() takes it from the environment: from DUNLIN_* or from the variables of mpirun or srun
/// (docs/deploy.md). If those are incomplete or contradict each other, join() throws;
/// Fabric::description() says which were taken.
struct NetworkJoinOptions {
  std::string group = {};
  /// The number of members; ranks go to them in order of arrival unless `rank` is given.
  std::uint32_t members = 0;
  /// In place of `members`: their names; a member's rank is the index of its name in the list.
  std::vector<std::string> names = {};
  std::string name = {};
  /// Asks for a rank (with `members`); kAnyRank takes the first free one.
  static constexpr std::uint32_t kAnyRank = UINT32_MAX;
  std::uint32_t rank = kAnyRank;
  /// How long to wait for the others; then join() throws Error, which names the missing members.
  std::uint32_t timeout_ms = 10'000;
  /// Silence after which a peer counts as failed although its connection is open (stopped, hung
  /// outside poll(), or behind a cut link); 0: never. A closed connection is noticed at once.
  /// Without a value: never if a launcher has placed this member, because mpirun and srun watch the
  /// processes; otherwise kSilenceTimeoutMs.
  std::optional<std::uint32_t> silence_timeout_ms = {};
  static constexpr std::uint32_t kSilenceTimeoutMs = 1'000;
  /// Where the members meet: "host:port", "[v6]:port" or "unix:NAME". The member that can bind this
  /// address serves the others.
  std::string rendezvous = {};
  /// Whether this member may be the one that serves the rendezvous.
  bool may_serve = true;
  /// The secret of the group's members; at least 16 bytes.
  std::string secret = {};
  /// Certificates for the rendezvous, in addition to the secret.
  TlsFiles tls = {};
  /// For tcp only: everything that the members send each other is encrypted (TLS 1.3), not only the
  /// rendezvous. All members must give the same value.
  bool encrypt = false;
  /// For ofi only: libfabric's name of the network; empty: ofi::kDefaultProvider.
  std::string provider = {};
  /// The network interface, or the device as libfabric ("domain") or ibv_devices names it; empty:
  /// the first that fits.
  std::string device = {};
  /// The address of this host that peers connect to. Empty: over tcp and ofi, the address from
  /// which this host reaches the rendezvous, or the others; over verbs, any address of the device.
  std::string address = {};

  [[nodiscard]] std::uint32_t silence_ms() const noexcept {
    return silence_timeout_ms.value_or(kSilenceTimeoutMs);
  }
};

}  // namespace dunlin
