#pragma once

#include <cstddef>
#include <cstdint>
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

struct RelayCounters {
  std::uint64_t accepted = 0;  // connections
  std::uint64_t rejected = 0;  // accepted connections that never said a good hello
  std::uint64_t damaged = 0;   // connections that broke the protocol
  std::uint64_t dropped = 0;   // clients and subscriptions that were too slow
  /// Connections of clients that had been at this relay or another one before.
  std::uint64_t resumed = 0;
  std::uint64_t published = 0;        // clients' samples, written to topics
  std::uint64_t published_bytes = 0;  // bytes of the payloads of `published`
  /// Clients' samples that had been delivered before, and were not written.
  std::uint64_t repeated = 0;
  std::uint64_t delivered = 0;  // samples given to subscriptions
  std::uint64_t delivered_bytes = 0;
  std::uint64_t skipped = 0;  // samples that slow subscriptions were not given
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
  [[nodiscard]] RelayCounters counters() const noexcept;
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
