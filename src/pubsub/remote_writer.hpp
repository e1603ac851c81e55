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

/// A writer of any member, including this one, as the topic knows it. Stored samples keep it alive.
struct RemoteWriter {
  std::string_view member;  // the topic keeps the name
  std::uint16_t number = 0;
  DataWriterQos qos = {};
  std::string type_text = {};
  bool refused = false;  // its type differs from the topic's: its samples do not count
  bool gone = false;     // the writer was withdrawn, or its member is gone
  bool silent = false;   // the writer's lease has run out
  std::uint64_t heard_ns = 0;
  // For a topic whose samples stay in the log (log_history.hpp), facts about the newest one:
  std::uint64_t newest_sample = 0;  // its number among all samples, from 1 on
  std::uint64_t newest_source_ns = 0;
  std::uint64_t newest_received_ns = 0;
  std::vector<ReaderCore*> readers = {};  // matching readers of this member

  [[nodiscard]] bool alive() const noexcept { return !gone && !silent; }
  /// When the sample in the log was received, by its writer's clock.
  [[nodiscard]] std::uint64_t received_ns(std::uint64_t source_ns) const noexcept {
    const std::uint64_t before_ns = newest_source_ns - std::min(newest_source_ns, source_ns);
    return newest_received_ns - std::min(newest_received_ns, before_ns);
  }
  [[nodiscard]] EndpointId id() const noexcept { return {.member = member, .number = number}; }
  [[nodiscard]] std::string name() const {
    return "writer " + std::to_string(number) + " of member '" + std::string(member) + "'";
  }
  /// Whether this live writer owns an instance before the other: the stronger one, and of equally
  /// strong ones the same one at all members.
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
  std::uint64_t received_ns;  // when it was first received, if it was stored
  std::uint64_t position;
  std::uint64_t order_position = 0;
};

}  // namespace dunlin::pubsub
