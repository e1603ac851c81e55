#include "bench/harness/team.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "bench/harness/clock.hpp"
#include "bench/harness/cores.hpp"

namespace dunlin::bench {

bool Member::arrive(std::uint64_t& generation) noexcept {
  generation = board_.generation.word.load(std::memory_order_acquire);
  if (board_.arrived.word.fetch_add(1, std::memory_order_acq_rel) + 1 != size_) return false;
  board_.arrived.word.store(0, std::memory_order_relaxed);
  board_.generation.word.store(generation + 1, std::memory_order_release);
  return true;
}

bool Member::all_arrived(std::uint64_t generation) const noexcept {
  return board_.generation.word.load(std::memory_order_acquire) != generation;
}

void Member::meet() noexcept {
  constexpr int kSpins = 2000;
  std::uint64_t generation = 0;
  if (arrive(generation)) return;
  for (int spins = 0; !all_arrived(generation); ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      sched_yield();
    }
  }
}

void Member::meet(const std::function<void()>& progress) {
  std::uint64_t generation = 0;
  if (arrive(generation)) return;
  while (!all_arrived(generation)) {
    progress();
    sched_yield();
  }
}

void Member::record(std::uint32_t series, double value) {
  if (series >= kMaxSeries || board_.rounds[series] >= kMaxRounds) {
    throw Error("bench: more than " + std::to_string(kMaxSeries) + " series or " +
                std::to_string(kMaxRounds) + " rounds; use fewer --rounds");
  }
  board_.samples[series][board_.rounds[series]++] = value;
}

void alternate(Member& me, std::uint32_t rounds, const std::vector<Contender>& contenders) {
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t who = (turn + round) % contenders.size();
      me.meet();
      const std::optional<double> measured = contenders[who]();
      const bool warm_up = round == 0;
      if (measured && !warm_up) me.record(static_cast<std::uint32_t>(who), *measured);
    }
  }
  me.meet();
}

struct Team::Process {
  pid_t pid = -1;
  int fd = -1;

  Process() = default;
  Process(Process&& other) noexcept
      : pid(std::exchange(other.pid, -1)), fd(std::exchange(other.fd, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    if (fd >= 0) ::close(fd);
  }
};

Team::Team(TeamOptions options) : options_(options) {
  if (options_.processes == 0 || options_.processes > kMaxTeam) {
    throw Error("bench: a team has 1 to " + std::to_string(kMaxTeam) + " processes, not " +
                std::to_string(options_.processes));
  }
  if (options_.pin) cores_ = usable_cores();
  if (cores_.size() < options_.processes) cores_.clear();
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(std::string("bench: no shared memory: ") + strerror(errno));
  board_ = new (memory) Board;
}

Team::~Team() { ::munmap(board_, sizeof(Board)); }

std::span<const double> Team::series(std::uint32_t index) const {
  return std::span(board_->samples.at(index)).first(board_->rounds.at(index));
}

void Team::run(const std::function<void(Member&)>& body) {
  std::fflush(nullptr);
  const int parent = ::getpid();
  std::vector<Process> processes(options_.processes);
  for (std::uint32_t rank = 0; rank < options_.processes; ++rank) {
    Process& process = processes[rank];
    process.pid = ::fork();
    if (process.pid == 0) become_member(rank, parent, body);
    if (process.pid > 0) process.fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
    if (process.pid < 0 || process.fd < 0) {
      throw Error(std::string("bench: cannot start a process: ") + strerror(errno));
    }
  }
  await(processes);
}

void Team::become_member(std::uint32_t rank, int parent, const std::function<void(Member&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int status = 0;
  try {
    if (pinned()) pin_to(cores_[rank]);
    Member me(*board_, rank, options_.processes);
    body(me);
  } catch (const std::exception& error) {
    std::snprintf(board_->errors[rank].data(), kErrorBytes, "%s", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

namespace {

std::string how_it_ended(int status, const char* error) {
  if (WIFSIGNALED(status)) {
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return *error != '\0' ? std::string("failed: ") + error
                        : "exited with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void Team::await(std::vector<Process>& processes) {
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  std::vector<pollfd> waits;
  for (const Process& process : processes) waits.push_back({process.fd, POLLIN, 0});
  for (std::size_t left = processes.size(); left > 0;) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    const int ready =
        ::poll(waits.data(), waits.size(), std::max(0, static_cast<int>(rest.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      throw Error("bench: " + std::to_string(left) + " of " + std::to_string(processes.size()) +
                  " processes did not finish within " + std::to_string(options_.timeout.count()) +
                  " ms; all were ended");
    }
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if ((waits[rank].revents & POLLIN) == 0) continue;
      int status = 0;
      ::waitpid(processes[rank].pid, &status, 0);
      processes[rank].pid = -1;
      waits[rank].fd = -1;
      --left;
      if (status != 0) {
        throw Error("bench: process " + std::to_string(rank) + " of " +
                    std::to_string(processes.size()) + " " +
                    how_it_ended(status, board_->errors[rank].data()));
      }
    }
  }
}

}  // namespace dunlin::bench
