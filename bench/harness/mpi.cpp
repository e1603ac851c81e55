#include "bench/harness/mpi.hpp"

#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <dunlin/error.hpp>

#include "bench/harness/program.hpp"

namespace dunlin::bench {
namespace {

constexpr const char* kProgram = "dunlin-mpi-barrier";
constexpr std::string_view kAnswer = "barriers per second: ";

/// Beside `dunlin` in the build tree and in bin/, or where tests run, beside that.
std::string find_program() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& place : {folder / kProgram, folder / ".." / "apps" / kProgram}) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return "";
}

}  // namespace

MpiBarrier::MpiBarrier() : program_(find_program()) {
  if (!program_exists("mpirun")) {
    missing_ = "MPI_Barrier was not measured: there is no mpirun (Debian: openmpi-bin)";
  } else if (program_.empty()) {
    missing_ =
        "MPI_Barrier was not measured: dunlin-mpi-barrier was not built, because MPI was "
        "not found then (Debian: libopenmpi-dev)";
  }
}

double MpiBarrier::per_second(std::uint32_t processes, std::uint64_t barriers,
                              std::chrono::milliseconds timeout) const {
  // Open MPI wants to be asked before it runs as root or with more processes than cores.
  const Outcome run = run_program({"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                   "none", "--mca", "mpi_yield_when_idle", "1", "-n",
                                   std::to_string(processes), program_, std::to_string(barriers)},
                                  "", timeout);
  const std::size_t at = run.output.find(kAnswer);
  if (run.status != 0 || at == std::string::npos) {
    throw Error("bench: mpirun failed with status " + std::to_string(run.status) + ": " +
                run.output);
  }
  return std::strtod(run.output.c_str() + at + kAnswer.size(), nullptr);
}

}  // namespace dunlin::bench
