#pragma once

#include <string>

namespace dunlin::app {

/// The content of a file, but for line ends behind it; throws BadInput, never with the content.
/// `option` says who named the file.
[[nodiscard]] std::string read_secret(const std::string& option, const std::string& file);

/// One that nobody else has.
[[nodiscard]] std::string random_secret();

}  // namespace dunlin::app
