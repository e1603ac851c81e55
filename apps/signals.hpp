#pragma once

namespace dunlin::app {

/// Undoes what libraries did to the signals that end a process before main() was called: their
/// handlers may exit with status 1, as one does that libfabric needs. Ignored ones stay so.
void take_back_signals() noexcept;

}  // namespace dunlin::app
