#pragma once

#include <span>
#include <string>

#include "bench/harness/experiment.hpp"

/// The reports of the findings: as text, as JSON, and as pictures.
namespace dunlin::bench {

/// A titled table for one finding: each result with its spread, limit, ratio, goal and note.
[[nodiscard]] std::string text_report(const Finding& finding);

/// An array with one object a result: name, params, value, unit, limit, ratio, and more.
[[nodiscard]] std::string json_report(std::span<const Finding> findings);

/// Makes the folder for pictures if need be. Throws BadInput if nothing can be written there, Error
/// if there is no gnuplot: before anything is measured.
void prepare_plots(const std::string& folder);

/// Draws one SVG a finding into a folder that is prepared. Throws Error.
void plot_report(const std::string& folder, std::span<const Finding> findings);

/// The gnuplot program that draws one finding; apart so that it can be read and tested.
[[nodiscard]] std::string plot_script(const Finding& finding, const std::string& svg_file);

}  // namespace dunlin::bench
