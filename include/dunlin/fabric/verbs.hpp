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
/// peer's memory without the peer's processor, as far as it promises what FAB-F1 and FAB-F2 ask
/// for; what it does not promise travels as messages (docs/verbs.md). Needs libibverbs and
/// librdmacm when it is built; without them join() says so.
///
///     auto fabric = dunlin::verbs::join({.group = "rack7", .members = 3,
///                                        .rendezvous = "10.0.0.1:7700", .secret = secret,
///                                        .device = "mlx5_0"});
namespace dunlin::verbs {

using JoinOptions = NetworkJoinOptions;

/// Join a group: returns when every member is there and all are connected. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// The same beside other work: poll() it. Error, here or from poll(). A rendezvous whose host has
/// a name and no address keeps poll() while the system resolves it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Where processes on several hosts form the fabrics of a group's later views (docs/group.md).
/// `options` are as for join(), without members, names and ranks; their `rendezvous` is an address
/// of this process alone, where who joins the group connects, and which others use when this
/// process leads. Who joins connects at all of `addresses`, addresses of those that may be there.
/// Throws Error.
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(JoinOptions options,
                                                     std::vector<std::string> addresses = {});

/// What this host has for such a fabric: "device address", one a line; and why there is nothing, if
/// so.
[[nodiscard]] std::vector<std::string> devices();

}  // namespace dunlin::verbs
