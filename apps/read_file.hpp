#pragma once

#include <string>

namespace dunlin::routing {

/// The whole content of a file. Throws BadInput if it cannot be read or is larger than 64 MB.
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace dunlin::routing
