#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "routing/record.hpp"

/// The texts that a run prints on the terminal, made without side effects.
namespace dunlin::routing {

/// "850 ns", "12.3 us", "4.56 ms".
[[nodiscard]] std::string show_time(std::uint64_t ns);
[[nodiscard]] std::string show_time(const std::optional<std::uint64_t>& ns);

/// The lines before the first event: the network, and the corrections to it; then, when all routers
/// are there, the head of the table of events.
[[nodiscard]] std::string heading(const Topology& topology, const std::string& fabric_text,
                                  std::size_t events);
[[nodiscard]] std::string columns();
[[nodiscard]] std::string event_line(const Topology& topology, const EventRecord& record,
                                     std::size_t number);
/// The lines after the last event, with the verdict.
[[nodiscard]] std::string conclusion(const RunRecord& run);

}  // namespace dunlin::routing
