#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/network.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The fabric over libfabric: members on several hosts, each with a connected, ordered stream to
/// every other. Operations posted to a peer travel in batches, and land when the peer polls. Needs
/// libfabric when it is built, and loads it at the first call, which takes 0.2 s with Debian's;
/// without it join() says so.
///
///     auto fabric = dunlin::ofi::join({.group = "rack7", .members = 3,
///                                      .rendezvous = "10.0.0.1:7700", .secret = secret});
///     auto local  = dunlin::ofi::join({.group = "rack7", .members = 3,
///                                      .rendezvous = "unix:rack7", .secret = secret});
///     auto placed = dunlin::ofi::join({.group = "rack7"});  // by mpirun, srun or DUNLIN_*
namespace dunlin::ofi {

using JoinOptions = NetworkJoinOptions;
/// The provider that is used if NetworkJoinOptions::provider is empty.
inline constexpr const char* kDefaultProvider = "tcp";

/// Join a group: returns when every member is there and all are connected. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// Begins a join(), which goes on beside other work: poll() it. Throws Error, here or from poll().
/// If the rendezvous is given by a host name, poll() may take as long as the system needs to
/// resolve it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Makes the place where processes on several hosts form the fabrics of a group's later views
/// (docs/group.md). `options` are as for join(), without members, names and ranks; their
/// `rendezvous` is an address of this process alone, at which joiners connect, and which other
/// members use when this process leads. A joiner connects to all `addresses`, where members of the
/// group may be. Throws Error.
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(JoinOptions options,
                                                     std::vector<std::string> addresses = {});

/// The networks of this host for such a fabric, one a line: "provider: device address"; if there
/// are none, the reason.
[[nodiscard]] std::vector<std::string> networks();

/// The other providers of libfabric, and why they cannot be used here, one a line: "provider: why";
/// if libfabric cannot be loaded, "libfabric: why".
[[nodiscard]] std::vector<std::string> unfit_networks();

}  // namespace dunlin::ofi
