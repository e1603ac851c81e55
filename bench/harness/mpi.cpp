#include "bench/harness/mpi.hpp"

#include <fmt/format.h>

#include <dunlin/error.hpp>

#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr std::string_view kCalls = "calls per second: ";

}  // namespace

MpiProgram::MpiProgram(std::string name, const std::string& measures,
                       const std::filesystem::path& folder)
    : program_(find_program(name, folder)) {
  if (!process::program_exists("mpirun")) {
    missing_ = measures + " was not measured: there is no mpirun (Debian: openmpi-bin)";
  } else if (program_.empty()) {
    missing_ = fmt::format(
        "{} was not measured: {} was not found beside dunlin, in {}; it is built and "
        "installed with dunlin where there is MPI (Debian: libopenmpi-dev)",
        measures, name, folder.string());
  }
}

std::string MpiProgram::run(std::uint32_t processes, const std::vector<std::string>& arguments,
                            std::chrono::milliseconds timeout) const {
  // Open MPI wants to be asked before it runs as root or with more processes than cores. Without
  // the last parameter, MPI_Win_allocate of its version 4.1.4 crashes.
  std::vector<std::string> command{"mpirun",
                                   "--allow-run-as-root",
                                   "--oversubscribe",
                                   "--bind-to",
                                   "none",
                                   "--mca",
                                   "mpi_yield_when_idle",
                                   "1",
                                   "--mca",
                                   "btl_vader_single_copy_mechanism",
                                   "none",
                                   "-n",
                                   std::to_string(processes),
                                   program_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const process::Outcome run = process::run({.command = command, .timeout = timeout});
  if (!run.status.well()) throw Error("bench: mpirun " + run.status.text() + ": " + run.output);
  return run.output;
}

MpiCollectives::MpiCollectives(const std::filesystem::path& folder)
    : MpiProgram("dunlin-mpi-collectives", "MPI_Barrier", folder) {}

double MpiCollectives::per_second(const std::string& call, std::uint32_t processes,
                                  std::uint64_t count, std::chrono::milliseconds timeout) const {
  return last_number_after(kCalls, "mpirun",
                           run(processes, {call, std::to_string(count)}, timeout));
}

MpiOneSided::MpiOneSided(const std::filesystem::path& folder)
    : MpiProgram("dunlin-mpi-one-sided", "MPI_Get", folder) {}

std::vector<std::string> MpiOneSided::arguments(const Batches& plan, std::size_t bytes) {
  return {std::to_string(plan.batches), std::to_string(plan.per_batch), std::to_string(bytes)};
}

MpiOneSided::Times MpiOneSided::measure(const Batches& plan, std::size_t bytes,
                                        std::chrono::milliseconds timeout) const {
  const std::string told = run(2, arguments(plan, bytes), timeout);
  const auto number = [&](const char* word) { return last_number_after(word, "mpirun", told); };
  return {number("get "), number("put "), number("fetch_add "), number("lock ")};
}

}  // namespace dunlin::bench
