#pragma once

#include <string>

namespace dunlin::app {

/// One that nobody else has.
[[nodiscard]] std::string random_secret();

}  // namespace dunlin::app
