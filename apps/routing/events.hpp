#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "routing/cost.hpp"
#include "routing/topology.hpp"

/// The events of a run: changes of links.
namespace dunlin::routing {

enum class EventKind : std::uint8_t { cost, down, up };

/// The new cost of an arc; kNoLink if it is lost.
struct Change {
  ArcId arc;
  Cost cost;
};

struct LinkEvent {
  EventKind kind;
  LinkId link;
  Cost before;
  Cost after;
  std::vector<Change> changes;  // one direction or both, each at its own tail
  bool one_direction = false;   // changes only one of a link's two directions
};

/// Reads a script; throws BadInput with file and line.
///
///     # A router is named by its id or its label; a name with blanks stands in double quotes.
///     cost "New York" Chicago 1500     both directions of the link
///     cost Denver -> Seattle 12.5      one direction
///     down Denver Seattle
///     up Denver Seattle                as dear as when it was lost
///     up Denver Seattle 99
[[nodiscard]] std::vector<LinkEvent> read_script(const std::string& path, const Topology& topology);
[[nodiscard]] std::vector<LinkEvent> parse_script(const std::string& file,
                                                  const std::string& content,
                                                  const Topology& topology);

/// `count` events drawn from a seed: about half are changes of cost, the others losses and returns.
[[nodiscard]] std::vector<LinkEvent> random_events(const Topology& topology, std::uint32_t count,
                                                   std::uint64_t seed);

/// The cost of every arc after the first `count` events.
[[nodiscard]] std::vector<Cost> costs_after(const Topology& topology,
                                            const std::vector<LinkEvent>& events,
                                            std::size_t count);

/// "New York – Chicago: 1146.16 → lost".
[[nodiscard]] std::string describe(const Topology& topology, const LinkEvent& event);

inline constexpr std::uint32_t kMaxEvents = 10'000;

}  // namespace dunlin::routing
