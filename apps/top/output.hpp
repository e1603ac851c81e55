#pragma once

#include <chrono>

#include "top/selection.hpp"

/// The three ways to be told.
namespace dunlin::top {

struct OutputOptions {
  Selection selection;
  std::chrono::nanoseconds interval{};
  bool json = false;
  bool raw = false;  // the columns of multicasts, as they are
};

/// One sample, with rates from a second one an interval later unless that is 0.
void print_once(const OutputOptions& options);
/// A block of text, or a line of JSON, an interval; until the group is gone or nobody reads.
void print_stream(const OutputOptions& options);
/// The screen, until the user has seen enough.
void show_live(const OutputOptions& options);

}  // namespace dunlin::top
