#pragma once

#include <string>

namespace dunlin::launch {

/// The content of a file that only its owner (and its group) may read, without the line's end.
/// Error names the file and what is wrong with it, never what is in it. `what` is it for people:
/// "the secret, DUNLIN_SECRET_FILE".
[[nodiscard]] std::string read_secret_file(const std::string& path, const std::string& what);

}  // namespace dunlin::launch
