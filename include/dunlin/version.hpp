#pragma once

#include <string_view>

namespace dunlin {

/// The version of the library that is linked, such as "0.2.0".
[[nodiscard]] std::string_view version() noexcept;

}  // namespace dunlin
