#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/network.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The fabric that takes the best way to each peer ("auto" on command lines): members of one host
/// reach each other through shared memory, and all others over one network: RDMA devices made of
/// hardware if every founder has one, else TCP. Each member finds out with which others it can
/// share memory; Fabric::description() names the way to each of them, and the reason. The
/// rendezvous needs OpenSSL when Dunlin is built.
///
///     auto fabric = dunlin::mixed::join({.group = "rack7", .members = 8,
///                                        .rendezvous = "10.0.0.1:7700", .secret = secret});
namespace dunlin::mixed {

/// The options of tcp, of which `device`, `address` and `encrypt` concern members on other hosts.
/// If `device` names an RDMA device, or `provider` a network of libfabric's, the members use that
/// network between hosts; with `encrypt` they use TCP.
using JoinOptions = NetworkJoinOptions;

/// Joins a group: returns when every member is there and all are connected. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// Begins a join(), which goes on beside other work: poll() it. Throws Error, here or from poll().
/// If the rendezvous is given by a host name, poll() may take as long as the system needs to
/// resolve it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Makes the place where members meet newcomers; see tcp::rendezvous().
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(JoinOptions options,
                                                     std::vector<std::string> addresses = {});

/// The networks that a member of this host offers to members of other hosts, the best first: "verbs
/// on mlx5_0 10.0.0.7", "tcp".
[[nodiscard]] std::vector<std::string> networks();

}  // namespace dunlin::mixed
