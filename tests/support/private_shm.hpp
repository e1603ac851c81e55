#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dunlin::test {

/// Gives this process, and those it forks from now on, a /dev/shm of their own of the given size.
/// Returns why that is not possible, or nothing. Meant for a process that is forked for a test.
[[nodiscard]] std::optional<std::string> mount_private_shm(std::uint64_t bytes);

[[nodiscard]] std::uint64_t free_shm_bytes();
/// The names in /dev/shm.
[[nodiscard]] std::string list_shm();

}  // namespace dunlin::test
