#pragma once

#include <string>

namespace dunlin::app {

/// The content of a file, or of a pipe until its end. Throws BadInput that names it, also for a
/// directory, and for what has more than 64 MB, as a device may.
[[nodiscard]] std::string read_file(const std::string& path);
/// The secret in a file that only its owner may read; empty without a path. `what` names the
/// secret, or the option. Throws BadInput.
[[nodiscard]] std::string read_secret_file(const std::string& path, const std::string& what);

}  // namespace dunlin::app
