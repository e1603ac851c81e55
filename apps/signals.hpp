#pragma once

namespace dunlin::app {

/// Undoes what libraries did to the signals that end a process before main() was called: one that
/// libfabric needs (libinfinipath) has handlers that exit with status 1. Ignored ones stay so.
void take_back_signals() noexcept;

}  // namespace dunlin::app
