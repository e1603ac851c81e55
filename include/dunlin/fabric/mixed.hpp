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

/// As for tcp: `device`, `address` and `encrypt` are about the members on other hosts. If `device`
/// names an RDMA device, or `provider` a network of libfabric's, that is the network between hosts;
/// with `encrypt` it is TCP.
using JoinOptions = NetworkJoinOptions;

/// Joins a group: returns when every member is there and all are connected. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// The same beside other work: poll() it. Error, here or from poll(). A rendezvous whose host has
/// a name and no address keeps poll() while the system resolves it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Where members meet newcomers, as tcp::rendezvous().
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(JoinOptions options,
                                                     std::vector<std::string> addresses = {});

/// What a member of this host offers to those of other hosts, the best first: "verbs on mlx5_0
/// 10.0.0.7", "tcp".
[[nodiscard]] std::vector<std::string> networks();

}  // namespace dunlin::mixed
