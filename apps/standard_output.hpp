#pragma once

#include <string_view>

/// Standard output, of which nothing may be lost in silence.
namespace dunlin::app {

/// Keeps the numbers 0, 1 and 2 from going to files and sockets if they were closed: output would
/// go there. Before anything else is opened.
void hold_standard_descriptors() noexcept;

/// Print, at once. Throws Error that says why it could not be.
void say(std::string_view text);

/// Throws Error unless all that was printed since the start has arrived.
void demand_output_arrived();

}  // namespace dunlin::app
