#include "routing/processes.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <initializer_list>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/child.hpp"
#include "command.hpp"

namespace dunlin::routing {

namespace {

// Written at once, so that those of several children do not mix.
constexpr std::size_t kMostComplaintBytes = PIPE_BUF;
// Before a complaint; behind it a zero.
constexpr char kBadInput = 'i';
constexpr char kError = 'e';
// The others notice a death at once; how fast they are depends on the load of this host.
constexpr std::uint64_t kOthersExplainMs = 5'000;
constexpr int kLookMs = 100;  // meanwhile

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

std::uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace

Processes::Processes() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(fmt::format("pipe: {}", std::strerror(errno)));
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  const sigset_t set = set_of({SIGCHLD});  // so that we can wait for it
  sigprocmask(SIG_BLOCK, &set, nullptr);
  ended_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

Processes::~Processes() {
  for (const pid_t process : running_) kill(process, SIGKILL);
  for (const pid_t process : running_) {
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const sigset_t set = set_of({SIGCHLD});
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  close(ended_);
  close(read_end_);
  close(write_end_);
}

void Processes::start(const std::function<void()>& work) {
  std::fflush(nullptr);  // or the child would write it, too
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const std::string fault = app::fork_fault();
    throw Error(fmt::format("cannot start process {}: {}", running_.size() + 1, fault));
  }
  if (child == 0) run_child(parent, work);
  running_.push_back(child);
}

void Processes::run_child(pid_t parent, const std::function<void()>& work) noexcept {
  app::belong_to(parent);
  int status = 0;
  const auto say = [&](char kind, const char* what) {
    const std::string line = kind + std::string(what).substr(0, kMostComplaintBytes - 2) + '\0';
    status = write(write_end_, line.data(), line.size()) < 0 ? 2 : 1;
  };
  try {
    work();
  } catch (const app::BadInput& error) {
    say(kBadInput, error.what());
  } catch (const std::exception& error) {
    say(kError, error.what());
  }
  _exit(status);
}

void Processes::complain() {
  std::string all(kMostComplaintBytes, '\0');
  const ssize_t bytes = read(read_end_, all.data(), all.size());
  if (bytes <= 0) return;
  const std::string first = all.c_str() + 1;
  if (all.front() == kBadInput) throw app::BadInput(first);
  throw Error(first);
}

void Processes::demand_health() {
  std::string fault = reap();
  if (fault_.empty() && !fault.empty()) {
    fault_ = std::move(fault);
    fault_ms_ = now_ms();
  }
  complain();
  const bool others_may = !running_.empty() && now_ms() < fault_ms_ + kOthersExplainMs;
  if (!fault_.empty() && !others_may) throw Error(fault_);
}

void Processes::await_news(const std::vector<int>& others, int timeout_ms) {
  std::vector<pollfd> watched{{ended_, POLLIN, 0}, {read_end_, POLLIN, 0}};
  for (const int other : others) watched.push_back({other, POLLIN, 0});
  static_cast<void>(poll(watched.data(), watched.size(), fault_.empty() ? timeout_ms : kLookMs));
  signalfd_siginfo info{};
  while (read(ended_, &info, sizeof info) > 0) {
  }
}

std::string Processes::reap() noexcept {
  std::string fault;
  std::erase_if(running_, [&](pid_t process) {
    int status = 0;
    if (waitpid(process, &status, WNOHANG) != process) return false;
    if (WIFSIGNALED(status)) {
      fault = fmt::format("a process of this host was ended by signal {}", WTERMSIG(status));
    }
    return true;
  });
  return fault;
}

void Processes::finish(std::uint32_t timeout_ms) noexcept {
  const sigset_t set = set_of({SIGCHLD});
  const std::uint64_t deadline = now_ms() + timeout_ms;
  while (true) {
    static_cast<void>(reap());
    const std::uint64_t now = now_ms();
    if (running_.empty() || now >= deadline) return;
    const std::uint64_t left = deadline - now;
    const timespec wait{static_cast<time_t>(left / 1000),
                        static_cast<long>(left % 1000) * 1'000'000};
    sigtimedwait(&set, nullptr, &wait);
  }
}

}  // namespace dunlin::routing
