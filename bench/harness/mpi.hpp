#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/harness/program.hpp"
#include "process/program.hpp"

/// Programs of the MPI library, run beside what they are compared with: its collectives beside
/// ours, its barrier beside our counting when there are more processes than cores, and its
/// one-sided operations beside segments.
namespace dunlin::bench {

/// One of our small programs, and mpirun to start it with.
class MpiProgram {
 public:
  /// Looks for mpirun, and in the folder for the program; `measures` is what it would have told.
  MpiProgram(std::string name, const std::string& measures, const std::filesystem::path& folder);

  [[nodiscard]] bool available() const noexcept { return missing_.empty(); }
  /// What to do to make it available.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  /// The output of so many processes of it, which share the cores and yield when idle. Throws
  /// Error.
  [[nodiscard]] std::string run(std::uint32_t processes, const std::vector<std::string>& arguments,
                                std::chrono::milliseconds timeout) const;

 private:
  std::string program_;
  std::string missing_;
};

class MpiCollectives : public MpiProgram {
 public:
  /// Looks for mpirun, and in the folder for our small program.
  explicit MpiCollectives(const std::filesystem::path& folder = process::folder_of_this_program());

  /// Calls a second of `processes` that share the cores and yield when idle: "barrier",
  /// "all_reduce" or "broadcast". Throws Error.
  [[nodiscard]] double per_second(const std::string& call, std::uint32_t processes,
                                  std::uint64_t count, std::chrono::milliseconds timeout) const;
};

/// One-sided operations between two processes; medians in nanoseconds.
class MpiOneSided : public MpiProgram {
 public:
  explicit MpiOneSided(const std::filesystem::path& folder = process::folder_of_this_program());

  struct Times {
    double get_ns, put_ns, fetch_add_ns, lock_ns;  // the last one: MPI_Win_lock and unlock
  };
  /// Of the program.
  [[nodiscard]] static std::vector<std::string> arguments(const Batches& plan, std::size_t bytes);
  /// Throws Error.
  [[nodiscard]] Times measure(const Batches& plan, std::size_t bytes,
                              std::chrono::milliseconds timeout) const;
};

}  // namespace dunlin::bench
