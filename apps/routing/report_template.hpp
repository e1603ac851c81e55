#pragma once

#include <string_view>

namespace dunlin::routing {

/// report.html with its styles and script in it, put into the program by the build.
[[nodiscard]] std::string_view report_template() noexcept;

}  // namespace dunlin::routing
