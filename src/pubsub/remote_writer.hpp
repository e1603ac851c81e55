#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/wire.hpp"

namespace dunlin::pubsub {

/// A writer of any member, this one too, as the topic knows it. Stored samples keep it.
struct RemoteWriter {
  std::string_view member;  // the topic keeps the name
  std::uint16_t number = 0;
  DataWriterQos qos = {};
  std::string type_text = {};
  bool refused = false;  // it has another type than the topic: its samples are no samples
  bool gone = false;     // withdrawn, or its member is
  bool silent = false;   // its lease has run out
  std::uint64_t heard_ns = 0;
  // Of a topic whose samples stay in the log (log_history.hpp), of the newest one:
  std::uint64_t newest_sample = 0;  // its place among all samples, from 1 on
  std::uint64_t newest_source_ns = 0;
  std::uint64_t newest_received_ns = 0;
  std::vector<ReaderCore*> readers = {};  // those of this member that match

  [[nodiscard]] bool alive() const noexcept { return !gone && !silent; }
  /// When a sample was received that the log has, by its writer's clock.
  [[nodiscard]] std::uint64_t received_ns(std::uint64_t source_ns) const noexcept {
    const std::uint64_t before_ns = newest_source_ns - std::min(newest_source_ns, source_ns);
    return newest_received_ns - std::min(newest_received_ns, before_ns);
  }
  [[nodiscard]] EndpointId id() const noexcept { return {.member = member, .number = number}; }
  [[nodiscard]] std::string name() const {
    return "writer " + std::to_string(number) + " of member '" + std::string(member) + "'";
  }
  /// Of two live ones, the owner of an instance: the stronger, and of equal ones the same for all.
  [[nodiscard]] bool owns_before(const RemoteWriter& other) const noexcept {
    if (qos.ownership.strength != other.qos.ownership.strength)
      return qos.ownership.strength > other.qos.ownership.strength;
    if (member != other.member) return member < other.member;
    return number < other.number;
  }
};

/// A sample, or a change of an instance, on its way to the readers.
struct Incoming {
  MessageHeader header;
  std::span<const std::byte> payload;
  RemoteWriter* writer;
  std::uint64_t received_ns;  // the first time, for what was stored
  std::uint64_t position;
  std::uint64_t order_position = 0;
};

}  // namespace dunlin::pubsub
