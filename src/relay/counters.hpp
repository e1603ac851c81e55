#pragma once

#include <string>

#include <dunlin/relay/relay.hpp>

#include "fabric/counters/counters.hpp"

namespace dunlin::relay {

/// The counters that a relay shows to observers. docs/top.md says what each counts.
struct SharedCounters {
  /// `at` is the relay's ADDRESS:PORT.
  SharedCounters(Fabric& fabric, const std::string& at, const RelayOptions& options)
      : all(fabric, "relay=" + at) {
    most_clients.set(options.clients);
    is_encrypted.set(options.secret.empty() ? 0 : 1);
  }

  CounterSet all;
  SharedCounter clients = all.add_level("relay.clients");
  SharedCounter most_clients = all.add_level("relay.most_clients");
  SharedCounter blocked_clients = all.add_level("relay.blocked_clients");
  SharedCounter waiting_bytes = all.add_level("relay.waiting_bytes", CounterUnit::bytes);
  SharedCounter most_waiting_bytes =  // for one client
      all.add_level("relay.most_waiting_bytes", CounterUnit::bytes);
  SharedCounter published = all.add("relay.published");
  SharedCounter published_bytes =
      all.add("relay.published_bytes", CounterKind::total, CounterUnit::bytes);
  SharedCounter delivered = all.add("relay.delivered");
  SharedCounter delivered_bytes =
      all.add("relay.delivered_bytes", CounterKind::total, CounterUnit::bytes);
  SharedCounter skipped = all.add("relay.skipped");
  SharedCounter repeated = all.add("relay.repeated");
  SharedCounter accepted = all.add_event("relay.accepted");
  SharedCounter rejected = all.add_event("relay.rejected");
  SharedCounter damaged = all.add_event("relay.damaged");
  SharedCounter dropped = all.add_event("relay.dropped");
  SharedCounter resumed = all.add_event("relay.resumed");
  SharedCounter is_encrypted = all.add_level("relay.is_encrypted");
};

}  // namespace dunlin::relay
