#include "support/ground.hpp"

#include <cstdlib>

#include <dunlin/fabric/ofi.hpp>
#include <dunlin/fabric/shm.hpp>
#include <dunlin/fabric/verbs.hpp>

#include "support/hosts.hpp"

namespace dunlin::test {
namespace {

constexpr unsigned kHosts = 3;

std::unique_ptr<Fabric> join_shm(const Seat& seat) {
  return shm::join({.group = seat.group,
                    .members = seat.nodes,
                    .rank = seat.rank,
                    .timeout_ms = kPatienceMs,
                    .silence_timeout_ms = seat.silence_timeout_ms});
}

std::unique_ptr<Fabric> join_tcp(const Seat& seat, const std::string& meeting) {
  return ofi::join({.group = seat.group,
                    .members = seat.nodes,
                    .rank = seat.rank,
                    .timeout_ms = kPatienceMs,
                    .silence_timeout_ms = seat.silence_timeout_ms,
                    .meeting = meeting,
                    .secret = "only these tests know it",
                    .provider = "tcp"});
}

std::string fault_of_tcp() {
  static const std::string fault = [] {
    for (const std::string& network : ofi::networks())
      if (network.starts_with("tcp")) return "";
    return "libfabric has no tcp here";
  }();
  return fault;
}

std::unique_ptr<Fabric> join_loopback(const Seat& seat) {
  return join_tcp(seat, "unix:" + seat.group);
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

std::unique_ptr<Fabric> join_from_host(const Seat& seat) {
  hosts().enter(seat.rank % kHosts);
  // In namespaces of our own, so the port is free.
  const std::size_t port = 1024 + std::hash<std::string>()(seat.group) % 30'000;
  return join_tcp(seat, Hosts::address(0) + ":" + std::to_string(port));
}

/// The first that is named; in the emulated machine of tests/verbs.
std::string rdma_device() {
  const char* const named = std::getenv("DUNLIN_VERBS_DEVICES");
  const std::string all = named == nullptr ? "" : named;
  return all.substr(0, all.find(' '));
}

std::string fault_of_rdma() {
  return rdma_device().empty() ? "DUNLIN_VERBS_DEVICES names no RDMA device" : "";
}

std::unique_ptr<Fabric> join_rdma(const Seat& seat) {
  return verbs::join({.group = seat.group,
                      .members = seat.nodes,
                      .rank = seat.rank,
                      .timeout_ms = kPatienceMs,
                      .silence_timeout_ms = seat.silence_timeout_ms,
                      .meeting = "unix:" + seat.group,
                      .secret = "only these tests know it",
                      .device = rdma_device()});
}

}  // namespace

const std::vector<Ground>& grounds() {
  static const std::vector<Ground> all{
      {.name = "Shm", .why_not = [] { return std::string(); }, .join = join_shm},
      {.name = "Tcp", .why_not = fault_of_tcp, .join = join_loopback},
      {.name = "Hosts", .why_not = fault_of_hosts, .join = join_from_host},
      {.name = "Rdma", .why_not = fault_of_rdma, .join = join_rdma}};
  return all;
}

}  // namespace dunlin::test
