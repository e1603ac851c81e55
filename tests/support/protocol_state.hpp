#pragma once

#include <string>

namespace dunlin::test {

/// Prints what all sides of this test's groups show in their memory, as `dunlin top` reads it from
/// outside, so also of processes that hang. A wait that has lasted too long calls it. `waits_for`
/// says what has not come.
void print_protocol_state(const std::string& waits_for);

/// Waits until the descriptor is readable. Once that has taken longer than working code takes, it
/// prints the protocol state, and waits on: the test's own patience decides how the wait ends.
void wait_readable(int descriptor, const std::string& waits_for);

}  // namespace dunlin::test
