#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/network.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The fabric over RDMA devices: InfiniBand, RoCE and iWARP. A device writes into and reads from a
/// peer's memory without the peer's processor, as far as it keeps FAB-F1 and FAB-F2; all other
/// operations travel as messages (docs/verbs.md). Needs libibverbs and librdmacm when it is built;
/// without them join() says so.
///
///     auto fabric = dunlin::verbs::join({.group = "rack7", .members = 3,
///                                        .rendezvous = "10.0.0.1:7700", .secret = secret,
///                                        .device = "mlx5_0"});
namespace dunlin::verbs {

using JoinOptions = NetworkJoinOptions;

/// Joins a group: returns when every member is there and all are connected. Throws Error.
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

/// The devices of this host for such a fabric, one a line: "device address"; if there are none, the
/// reason.
[[nodiscard]] std::vector<std::string> devices();

}  // namespace dunlin::verbs
