#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/network.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The fabric over TCP: members on several hosts, each with one connection to every other.
/// Operations posted to a peer travel in batches, and land when the peer polls. The fabric uses the
/// kernel's sockets and no library besides; the rendezvous needs OpenSSL when Dunlin is built.
///
///     auto fabric = dunlin::tcp::join({.group = "rack7", .members = 3,
///                                      .rendezvous = "10.0.0.1:7700", .secret = secret});
///     auto local  = dunlin::tcp::join({.group = "rack7", .members = 3,
///                                      .rendezvous = "unix:rack7", .secret = secret});
///     auto placed = dunlin::tcp::join({.group = "rack7"});  // by mpirun, srun or DUNLIN_*
namespace dunlin::tcp {

/// `device` is a network interface, such as "eth0"; `provider` stays empty.
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

/// The addresses of this host's interfaces that are up, one a line: "eth0 10.0.0.7". If this build
/// has no tcp fabric, one line that says so.
[[nodiscard]] std::vector<std::string> networks();

}  // namespace dunlin::tcp
