#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Programs that are run beside what they are compared with, and what they print.
namespace dunlin::bench {

/// In that folder, which is that of dunlin-bench; tests have one of their own beside it. Empty if
/// it is in neither.
[[nodiscard]] std::string find_program(const std::string& name,
                                       const std::filesystem::path& folder);

/// The number behind the last of these words in what the program has printed. Throws Error.
[[nodiscard]] double last_number_after(std::string_view words, const std::string& program,
                                       const std::string& output);

}  // namespace dunlin::bench
