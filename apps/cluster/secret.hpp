#pragma once

#include <string>

namespace dunlin::app {

/// A secret that no other process has.
[[nodiscard]] std::string random_secret();

}  // namespace dunlin::app
