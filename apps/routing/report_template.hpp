#pragma once

#include <string_view>

namespace dunlin::routing {

/// report.html with its styles and script in it, put into the program by the build.
[[nodiscard]] std::string_view report_template() noexcept;

/// The styles alone, which the page of `dunlin kmers --report` has, too.
[[nodiscard]] std::string_view report_style() noexcept;

}  // namespace dunlin::routing
