#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <dunlin/pubsub/core.hpp>
#include <dunlin/relay/limits.hpp>

namespace dunlin::relay {

struct RelayOptions {
  std::string address = "127.0.0.1";  // an address of this host, in numbers
  std::uint16_t port = 0;             // 0: the kernel chooses
  /// The group's secret, which clients must know. Empty: any process that reaches the address is a
  /// client, so that must be a loopback address.
  std::string secret = {};
  std::size_t clients = kMaxClients;
  /// Most bytes that wait for a client, in addition to one sample.
  std::size_t queue_bytes = std::size_t{1} << 20;
  std::uint64_t slow_ns = 1'000'000'000;  // time after which a client is slow (RLY-6)
  std::uint64_t stall_ns = 10'000'000'000;
};

/// A member's service for programs that are no members (docs/relay.md): they publish and subscribe
/// by RelayClient. `dunlin top` shows its counters. One thread uses it, that of the participant.
///
///     Relay relay(participant, {.port = 7480});
///     Loop(participant.fabric()).add(participant).add(relay).run();
class Relay {
 public:
  /// The constructor listens. The participant must outlive the relay. Throws Error.
  explicit Relay(pubsub::DomainParticipant& participant, RelayOptions options = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Makes progress; call it after the participant's poll(). Returns how many things were done.
  std::size_t poll();
  [[nodiscard]] Waits waits();

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::size_t clients() const noexcept;
  /// The number of relays of the group that this one knows, itself included: they share their
  /// clients' topics (RLY-10). 0: it does not know them yet, and no endpoint of a client begins.
  [[nodiscard]] std::size_t relays() const noexcept;
  /// What it has counted, as `dunlin top` shows it: docs/top.md lists the names.
  [[nodiscard]] std::map<std::string, std::uint64_t> counters() const;
  /// A sentence that says why the last connection ended that its client did not end; empty: there
  /// is none.
  [[nodiscard]] const std::string& last_parting() const noexcept;
  /// Ends all connections, once their sockets have taken as many bytes as fit into them now.
  void close();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::relay
