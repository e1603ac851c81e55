#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/multicast.hpp>

/// Multicast between simulated nodes. Times are virtual; what varies from round to round is the
/// seed.
namespace dunlin::bench {

struct SimCast {
  std::uint32_t members = 2;
  std::uint32_t senders = 2;  // the first so many
  std::size_t bytes = 10'000;
  std::uint64_t messages = 1'000;  // that each member delivers while it is measured
  std::uint32_t window = 100;      // messages
  multicast::Switches switches = {};

  bool ordered = true;

  std::uint32_t subgroups = 1;  // all with all members and senders,
  std::uint32_t active = 1;     // of which so many are used

  std::uint32_t delayed = 0;       // of the senders, the last so many
  std::uint64_t delay_ns = 0;      // after each message; kSilent: they send none
  std::uint64_t pace_ns = 0;       // after each message of the other senders
  std::uint64_t upcall_ns = 0;     // the upcall of a batch takes
  double copy_ns_per_byte = 0.0;   // at both ends
  double store_ns_per_byte = 0.0;  // after each delivery

  static constexpr std::uint64_t kSilent = UINT64_MAX;
};

struct SimCastFigures {
  double bytes_per_ns = 0;  // that each member delivers
  // From commit() to the sender's own delivery: median, 99 %, 99.9 %.
  std::array<double, 3> latencies_ns{};
  double writes_per_message = 0;      // posted by a sender, for each of its own
  double operations_per_message = 0;  // posted by all members, for each message
  double posting_share = 0;           // of the time
  double records_sent_at_once = 0;
  double slots_received_at_once = 0;
  double delivered_at_once = 0;
};

[[nodiscard]] SimCastFigures run_sim_cast(const sim::Profile& profile, std::uint64_t seed,
                                          const SimCast& cast);

/// The same bytes put to all others, 100 KB at a time, without any protocol: bytes a ns that each
/// member gets, its own included.
[[nodiscard]] double run_sim_stream(const sim::Profile& profile, std::uint64_t seed,
                                    const SimCast& cast);

}  // namespace dunlin::bench
