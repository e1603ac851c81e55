#pragma once

#include <cstddef>
#include <string>

namespace dunlin {

/// The content of a file that only its owner (and its group) may read. Throws Error that names the
/// file, its purpose ("the secret, DUNLIN_SECRET_FILE") and its fault, never its contents.
[[nodiscard]] std::string read_private_file(const std::string& path, const std::string& what,
                                            std::size_t max_bytes);

inline constexpr std::size_t kMinSecretBytes = 16;
inline constexpr std::size_t kMaxSecretBytes = 4096;

/// Reads a secret that members of a group share from such a file, without line ends behind it;
/// neither too short nor too long.
[[nodiscard]] std::string read_secret(const std::string& path, const std::string& what);

/// A secret that nobody can guess, of 64 hexadecimal digits. Throws Error.
[[nodiscard]] std::string random_secret();

}  // namespace dunlin
