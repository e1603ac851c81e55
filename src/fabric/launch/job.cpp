#include "fabric/launch/job.hpp"

#include <array>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "fabric/launch/host_list.hpp"

namespace dunlin::launch {
namespace {

constexpr std::uint32_t kMost = 1U << 30;  // a group's own limits are checked later

[[noreturn]] void throw_incomplete(const std::string& who, const Environment& environment,
                                   const std::string& there, const std::string& missing,
                                   const std::string& what_to_do) {
  throw Error(who + " has told this process too little: " + state_of(environment, there) +
              ", but " + state_of(environment, missing) + ". " + what_to_do);
}

void check_rank(const Environment& environment, const Job& job) {
  if (job.members && job.rank >= *job.members)
    throw Error(job.title + " contradicts itself: " + state_of(environment, job.rank_variable) +
                ", but " + state_of(environment, job.members_variable) +
                ", and ranks count from 0");
  const auto pmix = environment.number("PMIX_RANK", 0, kMost);
  if (pmix && *pmix != job.rank)
    throw Error("launchers contradict each other: " + state_of(environment, job.rank_variable) +
                ", but " + state_of(environment, "PMIX_RANK") +
                ". Unset what does not hold, or say by DUNLIN_LAUNCHER=dunlin, with DUNLIN_MEMBERS "
                "and DUNLIN_RANK, that neither does");
}

// --- Open MPI: mpirun ----------------------------------------------------------------------------

constexpr const char* kOmpiRank = "OMPI_COMM_WORLD_RANK";
constexpr const char* kOmpiSize = "OMPI_COMM_WORLD_SIZE";
constexpr const char* kOmpiLocalSize = "OMPI_COMM_WORLD_LOCAL_SIZE";

std::optional<Job> open_mpi(const Environment& environment) {
  if (!environment.has(kOmpiRank) && !environment.has(kOmpiSize)) return std::nullopt;
  const bool no_rank = !environment.has(kOmpiRank);
  if (no_rank || !environment.has(kOmpiSize))
    throw_incomplete("Open MPI", environment, no_rank ? kOmpiSize : kOmpiRank,
                     no_rank ? kOmpiRank : kOmpiSize, "Start it with mpirun, or unset both");
  Job job{.launcher = "openmpi", .title = "Open MPI"};
  job.rank = *environment.number(kOmpiRank, 0, kMost);
  job.rank_variable = kOmpiRank;
  job.members = environment.number(kOmpiSize, 1, kMost);
  job.members_variable = kOmpiSize;
  check_rank(environment, job);
  if (const auto local = environment.number(kOmpiLocalSize, 1, kMost)) {
    job.hosts_because =
        state_of(environment, kOmpiSize) + " and " + state_of(environment, kOmpiLocalSize);
    if (*local > *job.members)
      throw Error("Open MPI contradicts itself: " + job.hosts_because +
                  ", but there cannot be more members on this host than on all");
    job.on_one_host = *local == *job.members;
  }
  job.id = environment.text("PMIX_NAMESPACE").value_or("");
  if (job.id.empty()) job.id = environment.text("OMPI_MCA_ess_base_jobid").value_or("");
  return job;
}

// --- Slurm: srun ---------------------------------------------------------------------------------

constexpr const char* kSlurmRank = "SLURM_PROCID";

std::string first_set(const Environment& environment, const char* one, const char* other) {
  return environment.has(one) ? one : other;
}

void read_hosts(const Environment& environment, Job& job) {
  const std::string variable = first_set(environment, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  const std::optional<std::string> text = environment.text(variable);
  if (!text) return;
  job.hosts_because = state_of(environment, variable);
  try {
    const HostList list = parse_host_list(*text);
    if (list.hosts > *job.members)
      throw Error("it has " + std::to_string(list.hosts) + " hosts, but " +
                  state_of(environment, job.members_variable));
    job.on_one_host = list.hosts == 1;
    job.first_host = list.first;
  } catch (const Error& error) {
    throw Error("Slurm's list of hosts makes no sense: " + job.hosts_because + ": " + error.what() +
                ". Say by DUNLIN_RENDEZVOUS=HOST:PORT where the members meet");
  }
}

std::optional<Job> slurm(const Environment& environment) {
  if (!environment.has(kSlurmRank)) return std::nullopt;
  Job job{.launcher = "slurm", .title = "Slurm"};
  job.rank = *environment.number(kSlurmRank, 0, kMost);
  job.rank_variable = kSlurmRank;
  job.members_variable = first_set(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  job.members = environment.number(job.members_variable, 1, kMost);
  if (!job.members)
    throw_incomplete("Slurm", environment, kSlurmRank, job.members_variable,
                     "Start it with srun, and say how many by --ntasks");
  check_rank(environment, job);
  read_hosts(environment, job);
  job.id = environment.text("SLURM_JOB_ID").value_or("");
  if (const auto step = environment.text("SLURM_STEP_ID"); step && !job.id.empty())
    job.id += "." + *step;
  return job;
}

// --- PMIx, from another launcher -----------------------------------------------------------------

std::optional<Job> pmix(const Environment& environment) {
  if (!environment.has("PMIX_RANK")) return std::nullopt;
  Job job{.launcher = "pmix", .title = "PMIx"};
  job.rank = *environment.number("PMIX_RANK", 0, kMost);
  job.rank_variable = "PMIX_RANK";
  job.id = environment.text("PMIX_NAMESPACE").value_or("");
  return job;
}

struct Launcher {
  const char* name;
  std::optional<Job> (*read)(const Environment&);
};
/// An mpirun may have been started within Slurm, so Open MPI comes first; both may offer PMIx.
constexpr std::array kLaunchers{Launcher{"openmpi", open_mpi}, Launcher{"slurm", slurm},
                                Launcher{"pmix", pmix}};

}  // namespace

std::optional<Job> find_job(const Environment& environment) {
  const std::optional<std::string> wanted = environment.text("DUNLIN_LAUNCHER");
  if (wanted == "dunlin") return std::nullopt;
  for (const Launcher& launcher : kLaunchers) {
    if (wanted && *wanted != launcher.name) continue;
    if (std::optional<Job> job = launcher.read(environment)) return job;
    if (wanted)
      throw Error(state_of(environment, "DUNLIN_LAUNCHER") +
                  ", but there is nothing of this launcher in the environment");
  }
  if (wanted)
    throw Error(state_of(environment, "DUNLIN_LAUNCHER") +
                "; possible are openmpi, slurm, pmix, and dunlin (DUNLIN_* only)");
  return std::nullopt;
}

}  // namespace dunlin::launch
