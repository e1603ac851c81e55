#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routing/check.hpp"
#include "routing/events.hpp"
#include "routing/topology.hpp"

/// The record of a run, for people (print.hpp), scripts (json_output.hpp) and the eye
/// (report.hpp). All times in nanoseconds.
namespace dunlin::routing {

/// How one router reacted to one event; its times are the fabric's.
struct Outcome {
  std::uint32_t stage = 0;         // the event's number in the table (rows.hpp)
  std::uint32_t computations = 0;  // 0: it could tell that it need not
  std::uint64_t changed_ns = 0;    // when it wrote the change, if it is an end of the link
  std::uint64_t installed_ns = 0;  // when its last computation was installed
  std::uint64_t compute_ns = 0;    // all computations together
  std::uint64_t settled_ns = 0;    // when it knew that it had seen all of the event
};

/// The same on the clock of the event: 0 is the write of the change.
struct Reaction {
  std::uint32_t computations;
  std::uint64_t installed_ns;
  std::uint64_t compute_ns;
  std::uint64_t settled_ns;
};

struct EventRecord {
  std::optional<LinkEvent> event;   // none: the start, at which all install their first routes
  std::uint64_t at_ns = 0;          // the change's write, since the run began
  std::vector<Reaction> reactions;  // by router
  std::uint32_t recomputed = 0;     // routers
  std::uint32_t skipped = 0;
  std::optional<std::uint64_t> first_ns;  // first router that is not an end of the link
  std::optional<std::uint64_t> last_ns;   // last router of all
  std::uint64_t last_compute_ns = 0;      // what the last router spent computing
  std::uint64_t median_compute_ns = 0;    // over the routers that computed
  std::uint64_t all_settled_ns = 0;
};

/// `changed_ns`: the earliest write of the change; `run_began_ns` on the same clock.
[[nodiscard]] EventRecord make_record(const Topology& topology,
                                      const std::optional<LinkEvent>& event,
                                      const std::vector<Outcome>& outcomes,
                                      std::uint64_t changed_ns, std::uint64_t run_began_ns);

struct RunRecord {
  Topology topology;
  std::string fabric;                 // "shm", "sim", "tcp", "ofi"
  std::string profile = {};           // the simulator's
  std::string network = {};           // the chosen network, and why; a line
  std::uint32_t hosts = 1;            // with several, times are the station's (docs/routing.md)
  std::optional<std::uint64_t> seed;  // for random events, or the simulator
  EventRecord start;
  std::vector<EventRecord> events;
  Verdict verdict;
};

struct Summary {
  std::uint64_t events = 0;
  std::uint64_t recomputed = 0;  // router-events
  std::uint64_t skipped = 0;
  std::optional<std::uint64_t> median_first_ns;
  std::optional<std::uint64_t> median_last_ns;
  std::optional<std::uint64_t> longest_last_ns;
  std::optional<std::uint64_t> median_compute_ns;
};
[[nodiscard]] Summary summarize(const RunRecord& run);

/// Throws VerificationFailed, and so makes the exit status 1, unless all routes of all runs are
/// right.
void demand_agreement(std::span<const RunRecord> runs);

/// Middle of the values (the lower one of two); they are not empty.
[[nodiscard]] std::uint64_t median(std::vector<std::uint64_t> values);

}  // namespace dunlin::routing
