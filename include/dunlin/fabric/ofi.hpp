#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>
#include <dunlin/fabric/tls.hpp>

/// The fabric over libfabric: members on several hosts, each with a connected, ordered stream to
/// every other. What is posted to a peer travels in batches, and lands when the peer polls. Needs
/// libfabric when it is built, and loads it at the first call, which takes 0.2 s with Debian's;
/// without it join() says so.
///
///     auto fabric = dunlin::ofi::join({.group = "rack7", .members = 3,
///                                      .meeting = "10.0.0.1:7700", .secret = secret});
///     auto local  = dunlin::ofi::join({.group = "rack7", .members = 3,
///                                      .meeting = "unix:rack7", .secret = secret});
///     auto placed = dunlin::ofi::join({.group = "rack7"});  // by mpirun, srun or DUNLIN_*
namespace dunlin::ofi {

/// What is empty of group, members or names (with rank or name), meeting, secret, tls and address
/// is taken from the environment: from DUNLIN_* or from what mpirun or srun says (docs/deploy.md).
/// If that is incomplete or contradicts itself, join() throws; Fabric::description() says what was
/// taken.
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
  /// libfabric's name of the network.
  std::string provider = "tcp";
  /// libfabric's name of the device (its "domain"); empty: the first that has the address.
  std::string device = {};
  /// The address of this host that peers connect to; empty: the one from which it reaches the
  /// meeting, or, on the rendezvous's own host, the one from which it reaches others.
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

/// What this host has for such a fabric: "provider: device address", one a line; and why there is
/// nothing, if so.
[[nodiscard]] std::vector<std::string> networks();

/// What libfabric has besides, and why it is no use here: "provider: why", one a line; if libfabric
/// cannot be loaded, "libfabric: why".
[[nodiscard]] std::vector<std::string> unfit_networks();

}  // namespace dunlin::ofi
