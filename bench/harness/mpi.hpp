#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

/// The MPI library's barrier, run beside our own counting when there are more processes than cores.
namespace dunlin::bench {

/// Where `dunlin` is, and beside it what belongs to it.
[[nodiscard]] std::filesystem::path folder_of_this_program();

class MpiBarrier {
 public:
  /// Looks for mpirun, and in the folder for our small program.
  explicit MpiBarrier(const std::filesystem::path& folder = folder_of_this_program());

  [[nodiscard]] bool available() const noexcept { return missing_.empty(); }
  /// What to do to make it available.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  /// Barriers a second of `processes` that share the cores and yield when idle. Throws Error.
  [[nodiscard]] double per_second(std::uint32_t processes, std::uint64_t barriers,
                                  std::chrono::milliseconds timeout) const;

 private:
  std::string program_;
  std::string missing_;
};

}  // namespace dunlin::bench
