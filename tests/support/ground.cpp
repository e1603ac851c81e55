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

std::shared_ptr<MeetingPlace> place_in_shm(const Seat& seat) {
  return shm::meeting_place({.group = seat.group,
                             .timeout_ms = kPatienceMs,
                             .silence_timeout_ms = seat.silence_timeout_ms});
}

ofi::JoinOptions tcp_options(const Seat& seat, const std::string& meeting) {
  return {.group = seat.group,
          .members = seat.nodes,
          .rank = seat.rank,
          .timeout_ms = kPatienceMs,
          .silence_timeout_ms = seat.silence_timeout_ms,
          .meeting = meeting,
          .secret = "only these tests know it",
          .provider = "tcp"};
}

/// Each node has a door of its own.
template <class Options, class MakePlace, class Door>
std::shared_ptr<MeetingPlace> place_with_doors(const Seat& seat, Options options, MakePlace make,
                                               Door door) {
  std::vector<std::string> others;
  for (Rank rank = 0; rank < seat.nodes; ++rank)
    if (rank != seat.rank) others.push_back(door(rank));
  options.meeting = door(seat.rank);
  return make(std::move(options), std::move(others));
}

std::string unix_door(const Seat& seat, Rank rank) {
  return "unix:" + seat.group + ".of." + std::to_string(rank);
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
  return ofi::join(tcp_options(seat, "unix:" + seat.group));
}

std::shared_ptr<MeetingPlace> place_on_loopback(const Seat& seat) {
  return place_with_doors(seat, tcp_options(seat, {}), ofi::meeting_place,
                          [&](Rank rank) { return unix_door(seat, rank); });
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

/// In namespaces of our own, so the port is free.
std::string port_of(const Seat& seat, std::size_t which) {
  return ":" + std::to_string(1024 + (std::hash<std::string>()(seat.group) + which) % 30'000);
}

std::unique_ptr<Fabric> join_from_host(const Seat& seat) {
  hosts().enter(seat.rank % kHosts);
  return ofi::join(tcp_options(seat, Hosts::address(0) + port_of(seat, 0)));
}

std::shared_ptr<MeetingPlace> place_on_host(const Seat& seat) {
  hosts().enter(seat.rank % kHosts);
  return place_with_doors(seat, tcp_options(seat, {}), ofi::meeting_place, [&](Rank rank) {
    return Hosts::address(rank % kHosts) + port_of(seat, 1 + rank);
  });
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

verbs::JoinOptions rdma_options(const Seat& seat) {
  return {.group = seat.group,
          .members = seat.nodes,
          .rank = seat.rank,
          .timeout_ms = kPatienceMs,
          .silence_timeout_ms = seat.silence_timeout_ms,
          .meeting = "unix:" + seat.group,
          .secret = "only these tests know it",
          .device = rdma_device()};
}

std::unique_ptr<Fabric> join_rdma(const Seat& seat) { return verbs::join(rdma_options(seat)); }

std::shared_ptr<MeetingPlace> place_on_rdma(const Seat& seat) {
  return place_with_doors(seat, rdma_options(seat), verbs::meeting_place,
                          [&](Rank rank) { return unix_door(seat, rank); });
}

}  // namespace

const std::vector<Ground>& grounds() {
  static const std::vector<Ground> all{{.name = "Shm",
                                        .why_not = [] { return std::string(); },
                                        .join = join_shm,
                                        .meeting_place = place_in_shm},
                                       {.name = "Tcp",
                                        .why_not = fault_of_tcp,
                                        .join = join_loopback,
                                        .meeting_place = place_on_loopback},
                                       {.name = "Hosts",
                                        .why_not = fault_of_hosts,
                                        .join = join_from_host,
                                        .meeting_place = place_on_host},
                                       {.name = "Rdma",
                                        .why_not = fault_of_rdma,
                                        .join = join_rdma,
                                        .meeting_place = place_on_rdma}};
  return all;
}

}  // namespace dunlin::test
