#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>
#include <dunlin/fabric/tls.hpp>

/// The fabric over RDMA devices: InfiniBand, RoCE and iWARP. A device writes into and reads from a
/// peer's memory without the peer's processor, as far as it promises what FAB-F1 and FAB-F2 ask
/// for; what it does not promise travels as messages (docs/verbs.md). Needs libibverbs and
/// librdmacm when it is built; without them join() says so.
///
///     auto fabric = dunlin::verbs::join({.group = "rack7", .members = 3,
///                                        .meeting = "10.0.0.1:7700", .secret = secret,
///                                        .device = "mlx5_0"});
namespace dunlin::verbs {

/// What is empty of group, members or names (with rank or name), meeting, secret, tls and address
/// is taken from the environment, as with ofi::JoinOptions.
struct JoinOptions {
  std::string group = {};
  /// How many members; ranks go to them in order of arrival unless `rank` is given.
  std::uint32_t members = 0;
  /// Or: the members by name; a member's rank is the place of its name in the list.
  std::vector<std::string> names = {};
  std::string name = {};
  /// Ask for a rank (with `members`); kAnyRank takes the first free one.
  static constexpr std::uint32_t kAnyRank = UINT32_MAX;
  std::uint32_t rank = kAnyRank;
  /// How long to wait for the others; then Error, which names who is missing.
  std::uint32_t timeout_ms = 10'000;
  /// Silence after which a peer counts as failed though its connection is open (stopped, hung
  /// outside poll(), or behind a cut link); 0 never. A closed connection is noticed at once.
  std::uint32_t silence_timeout_ms = 1'000;
  /// Where the members meet: "host:port", "[v6]:port" or "unix:NAME". Whoever can bind it serves
  /// the others.
  std::string rendezvous = {};
  /// Whether this member may be the one who serves.
  bool may_serve = true;
  /// What all members know and nobody else does; at least 16 bytes.
  std::string secret = {};
  /// Certificates for the rendezvous, besides the secret.
  TlsFiles tls = {};
  /// The device, as ibv_devices lists it; empty: any.
  std::string device = {};
  /// The address of this host, on a device, that peers connect to; empty: any of the device's.
  std::string address = {};
};

/// Join a group: returns when every member is there and all are connected. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// The same beside other work: poll() it. Error, here or from poll(). A meeting whose host has a
/// name and no address keeps poll() while the system resolves it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Where processes on several hosts form the fabrics of a group's later views (docs/group.md).
/// `options` are as for join(), without members, names and ranks; their `meeting` is an address of
/// this process alone, where who joins the group connects, and which others use when this process
/// leads. Who joins connects at all of `addresses`, addresses of those that may be there. Throws
/// Error.
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(JoinOptions options,
                                                     std::vector<std::string> addresses = {});

/// What this host has for such a fabric: "device address", one a line; and why there is nothing, if
/// so.
[[nodiscard]] std::vector<std::string> devices();

}  // namespace dunlin::verbs
