#pragma once

#include <optional>
#include <string>

#include "kmers/count.hpp"
#include "kmers/jellyfish.hpp"

namespace dunlin::kmers {

/// Lines for the terminal.
[[nodiscard]] std::string text_report(const CountOptions& options, const Counted& counted,
                                      const std::optional<Comparison>& comparison);
/// One self-contained page: histogram, load of each member, style and why, where the time went.
[[nodiscard]] std::string html_report(const CountOptions& options, const Counted& counted,
                                      const std::optional<Comparison>& comparison);

}  // namespace dunlin::kmers
