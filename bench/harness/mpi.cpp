#include "bench/harness/mpi.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr const char* kProgram = "dunlin-mpi-barrier";
constexpr std::string_view kAnswer = "barriers per second: ";

/// In the folder of `dunlin`; tests have one of their own beside that. Empty if it is in neither.
std::string find_program(const std::filesystem::path& folder) {
  for (const auto& place : {folder / kProgram, folder / ".." / "apps" / kProgram}) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return "";
}

}  // namespace

std::filesystem::path folder_of_this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

MpiBarrier::MpiBarrier(const std::filesystem::path& folder) : program_(find_program(folder)) {
  if (!process::program_exists("mpirun")) {
    missing_ = "MPI_Barrier was not measured: there is no mpirun (Debian: openmpi-bin)";
  } else if (program_.empty()) {
    missing_ = fmt::format(
        "MPI_Barrier was not measured: {} was not found beside dunlin, in {}; it is built and "
        "installed with dunlin where there is MPI (Debian: libopenmpi-dev)",
        kProgram, folder.string());
  }
}

double MpiBarrier::per_second(std::uint32_t processes, std::uint64_t barriers,
                              std::chrono::milliseconds timeout) const {
  // Open MPI wants to be asked before it runs as root or with more processes than cores.
  const process::Outcome run =
      process::run({.command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                "none", "--mca", "mpi_yield_when_idle", "1", "-n",
                                std::to_string(processes), program_, std::to_string(barriers)},
                    .timeout = timeout});
  const std::size_t at = run.output.find(kAnswer);
  if (!run.status.well() || at == std::string::npos) {
    throw Error("bench: mpirun " + run.status.text() + ": " + run.output);
  }
  return std::strtod(run.output.c_str() + at + kAnswer.size(), nullptr);
}

}  // namespace dunlin::bench
