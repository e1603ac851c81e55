#pragma once

#include <cstddef>

#include <dunlin/fabric/sim.hpp>

#include "fabric/sim/ticks.hpp"

namespace dunlin::sim {

/// A profile's figures in ticks, which are computed once.
struct Costs {
  explicit Costs(const Profile& p);

  Ticks write_latency;
  Ticks read_half;  // half of a round trip; an acknowledgement takes as long
  Ticks atomic_half;
  Ticks message_latency;
  Ticks nic_gap;
  Ticks same_word_gap;  // 0 without native atomics
  Ticks retry_timeout;
  Ticks heartbeat_interval;
  Ticks silence_timeout;
  double ticks_per_byte;      // on a port; 0: no limit
  double bus_ticks_per_byte;  // added for each byte of the first packet
  std::size_t packet_bytes;
  double jitter;

  /// How long that many bytes take on a wire that is `pace` times as slow as a port.
  [[nodiscard]] Ticks on_wire(std::size_t bytes, double pace = 1.0) const noexcept {
    return rounded(static_cast<double>(bytes) * ticks_per_byte * pace);
  }
  /// The time from the first of that many bytes to the last.
  [[nodiscard]] Ticks to_last(std::size_t bytes, double pace) const noexcept {
    return bytes == 0 ? 0 : on_wire(bytes - 1, pace);
  }
  [[nodiscard]] Ticks on_bus(std::size_t bytes) const noexcept {
    const std::size_t held = bytes < packet_bytes ? bytes : packet_bytes;
    return held == 0 ? 0 : rounded(static_cast<double>(held - 1) * bus_ticks_per_byte);
  }
};

/// Throws Error that names the figure that makes no sense.
void check(const Profile& profile);

}  // namespace dunlin::sim
