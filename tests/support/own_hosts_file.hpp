#pragma once

#include <optional>
#include <string>

namespace dunlin::test {

/// Gives this process, and those it forks from now on, an /etc/hosts of their own. Returns why that
/// is not possible, or nothing. Meant for a process that is forked for a test.
[[nodiscard]] std::optional<std::string> give_own_hosts_file(const std::string& content);

}  // namespace dunlin::test
