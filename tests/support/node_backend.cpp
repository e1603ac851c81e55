#include "support/node_backend.hpp"

#include <algorithm>
#include <cstdlib>

#include <dunlin/error.hpp>
#include <dunlin/join.hpp>

#include "support/hosts.hpp"

namespace dunlin::test {
namespace {

constexpr unsigned kHosts = 3;

std::unique_ptr<Fabric> join_shm(const NodeSpec& spec) {
  return join({.group = spec.group,
               .members = spec.nodes,
               .rank = spec.rank,
               .timeout_ms = kPatienceMs,
               .silence_timeout_ms = spec.silence_timeout_ms});
}

std::shared_ptr<Rendezvous> place_in_shm(const NodeSpec& spec) {
  return make_rendezvous({.group = spec.group,
                          .timeout_ms = kPatienceMs,
                          .silence_timeout_ms = spec.silence_timeout_ms});
}

JoinOptions tcp_options(const NodeSpec& spec, const std::string& rendezvous) {
  return {.network = "tcp",
          .group = spec.group,
          .members = spec.nodes,
          .rank = spec.rank,
          .timeout_ms = kPatienceMs,
          .silence_timeout_ms = spec.silence_timeout_ms,
          .rendezvous = rendezvous,
          .secret = "only these tests know it"};
}

/// Each node has a listener of its own.
template <class Options, class MakePlace, class Address>
std::shared_ptr<Rendezvous> rendezvous_at(const NodeSpec& spec, Options options, MakePlace make,
                                          Address address) {
  std::vector<std::string> others;
  for (Rank rank = 0; rank < spec.nodes; ++rank)
    if (rank != spec.rank) others.push_back(address(rank));
  options.rendezvous = address(spec.rank);
  return make(std::move(options), std::move(others));
}

std::string unix_address_of(const NodeSpec& spec, Rank rank) {
  return "unix:" + spec.group + ".of." + std::to_string(rank);
}

/// A build without OpenSSL has no tcp fabric.
std::string fault_of_tcp() {
  for (const std::string& network : devices_of("tcp"))
    if (network.starts_with("lo ")) return "";
  return "there is no tcp fabric on the loopback device here";
}

std::unique_ptr<Fabric> join_loopback(const NodeSpec& spec) {
  return join(tcp_options(spec, "unix:" + spec.group));
}

std::shared_ptr<Rendezvous> place_on_loopback(const NodeSpec& spec) {
  return rendezvous_at(spec, tcp_options(spec, {}), make_rendezvous,
                       [&](Rank rank) { return unix_address_of(spec, rank); });
}

const Hosts& hosts() {
  static const Hosts all(kHosts);
  return all;
}

std::string fault_of_hosts() {
  if (std::string fault = fault_of_tcp(); !fault.empty()) return fault;
  if (!Hosts::why_not().empty()) return Hosts::why_not();
  static_cast<void>(hosts());
  return "";
}

/// The port is free, as the namespaces are our own.
std::string port_of(const NodeSpec& spec, std::size_t which) {
  return ":" + std::to_string(1024 + (std::hash<std::string>()(spec.group) + which) % 30'000);
}

std::unique_ptr<Fabric> join_from_host(const NodeSpec& spec) {
  hosts().enter(spec.rank % kHosts);
  return join(tcp_options(spec, Hosts::address(0) + port_of(spec, 0)));
}

std::shared_ptr<Rendezvous> place_on_host(const NodeSpec& spec) {
  hosts().enter(spec.rank % kHosts);
  return rendezvous_at(spec, tcp_options(spec, {}), make_rendezvous, [&](Rank rank) {
    return Hosts::address(rank % kHosts) + port_of(spec, 1 + rank);
  });
}

/// The first device that the emulated machine of tests/verbs names.
std::string rdma_device() {
  const char* const named = std::getenv("DUNLIN_VERBS_DEVICES");
  const std::string all = named == nullptr ? "" : named;
  return all.substr(0, all.find(' '));
}

std::string fault_of_rdma() {
  return rdma_device().empty() ? "DUNLIN_VERBS_DEVICES names no RDMA device" : "";
}

JoinOptions rdma_options(const NodeSpec& spec) {
  return {.network = "verbs",
          .group = spec.group,
          .members = spec.nodes,
          .rank = spec.rank,
          .timeout_ms = kPatienceMs,
          .silence_timeout_ms = spec.silence_timeout_ms,
          .rendezvous = "unix:" + spec.group,
          .secret = "only these tests know it",
          .device = rdma_device()};
}

std::unique_ptr<Fabric> join_rdma(const NodeSpec& spec) { return join(rdma_options(spec)); }

std::shared_ptr<Rendezvous> place_on_rdma(const NodeSpec& spec) {
  return rendezvous_at(spec, rdma_options(spec), make_rendezvous,
                       [&](Rank rank) { return unix_address_of(spec, rank); });
}

}  // namespace

const std::vector<NodeBackend>& backends() {
  static const std::vector<NodeBackend> all{{.name = "Shm",
                                             .why_not = [] { return std::string(); },
                                             .join = join_shm,
                                             .rendezvous = place_in_shm},
                                            {.name = "Tcp",
                                             .why_not = fault_of_tcp,
                                             .join = join_loopback,
                                             .rendezvous = place_on_loopback},
                                            {.name = "Hosts",
                                             .why_not = fault_of_hosts,
                                             .join = join_from_host,
                                             .rendezvous = place_on_host},
                                            {.name = "Rdma",
                                             .why_not = fault_of_rdma,
                                             .join = join_rdma,
                                             .rendezvous = place_on_rdma,
                                             .silence_ms = 10'000}};
  return all;
}

const NodeBackend& backend_of(const std::string& name) {
  const auto found = std::ranges::find(backends(), name, &NodeBackend::name);
  if (found == backends().end()) throw Error("there is no backend " + name);
  return *found;
}

std::vector<NodeBackend> backends_of(const std::vector<std::string>& names) {
  std::vector<NodeBackend> some;
  for (const std::string& name : names) some.push_back(backend_of(name));
  return some;
}

}  // namespace dunlin::test
