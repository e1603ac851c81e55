#pragma once

#include <span>
#include <string>

#include "bench/harness/experiment.hpp"

/// The reports of the findings: as text, as JSON, and as a page.
namespace dunlin::bench {

/// A titled table for one finding: each result with its spread, limit, ratio, goal and note.
[[nodiscard]] std::string text_report(const Finding& finding);

/// An array with one object a result: name, params, value, unit, limit, ratio, and more.
[[nodiscard]] std::string json_report(std::span<const Finding> findings);

/// One self-contained page: a chart and a table for each finding.
[[nodiscard]] std::string html_report(std::span<const Finding> findings);

}  // namespace dunlin::bench
