#pragma once

#include <string>
#include <string_view>

/// The pages of `--report`: one file of styles and scripts (apps/report/), with the figures inside.
/// It needs no network.
namespace dunlin::app {

/// `page`: the script that draws it, "routing" say. `json`: what the script reads.
[[nodiscard]] std::string report_page(std::string_view page, std::string_view json);

/// The page without figures, which the build puts into the program.
[[nodiscard]] std::string_view report_template() noexcept;

}  // namespace dunlin::app
