#include "process/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::process {
namespace {

/// The status of a process that somebody else has waited for.
constexpr int kUnknownEnd = 255 << 8;

std::string fork_fault() {
  const int error = errno;
  std::string text = "cannot start a process: " + error_text(error);
  if (error != EAGAIN) return text;
  return text + ": raise the number of processes that this user may have (ulimit -u)";
}

/// In another name space for processes, getppid() has no number for the parent and returns 0.
void end_with_parent(pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t now = getppid();
  if (now != parent && now != 0) _exit(1);
}

[[noreturn]] void live(pid_t parent, const std::function<int()>& life) noexcept {
  end_with_parent(parent);
  int code = 1;
  try {
    code = life();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in a child process: %s\n", error.what());
  }
  _exit(code);  // what the parent does at its own exit is not the child's to do
}

}  // namespace

int Status::exit_code() const noexcept {
  return WIFSIGNALED(raw_) ? -WTERMSIG(raw_) : WEXITSTATUS(raw_);
}

std::string Status::text() const {
  const int code = exit_code();
  if (code >= 0) return "exited with status " + std::to_string(code);
  return "was ended by signal " + std::to_string(-code) + " (" + strsignal(-code) + ")";
}

Child::Child(const std::function<int()>& life) : parent_(getpid()) {
  std::fflush(nullptr);  // or the child would write it, too
  pid_ = fork();
  if (pid_ < 0) throw Error(fork_fault());
  if (pid_ == 0) live(parent_, life);
}

Child::~Child() {
  if (running()) kill();
}

void Child::swap(Child& other) noexcept {
  std::swap(parent_, other.parent_);
  std::swap(pid_, other.pid_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(status_, other.status_);
  std::swap(peak_bytes_, other.peak_bytes_);
}

bool Child::running() const noexcept { return pid_ > 0 && !status_ && getpid() == parent_; }

int Child::descriptor() {
  if (!descriptor_) {
    const long number = syscall(SYS_pidfd_open, pid_, 0);
    descriptor_ = Descriptor(checked(static_cast<int>(number), "pidfd_open"));
  }
  return descriptor_.get();
}

void Child::signal(int number) const noexcept {
  if (running()) ::kill(pid_, number);
}

void Child::kill() noexcept {
  signal(SIGKILL);
  reap(0);
}

Status Child::wait() noexcept {
  reap(0);
  return *status_;
}

std::optional<Status> Child::ended() noexcept {
  reap(WNOHANG);
  return status_;
}

void Child::reap(int options) noexcept {
  while (!status_) {
    int raw = 0;
    rusage use{};
    const pid_t reaped = wait4(pid_, &raw, options, &use);
    if (reaped == 0) return;  // it is still running
    if (reaped < 0 && errno == EINTR) continue;
    status_.emplace(reaped == pid_ ? raw : kUnknownEnd);
    peak_bytes_ = static_cast<std::uint64_t>(use.ru_maxrss) * 1024;
  }
}

void leave_terminal_to_parent() noexcept {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace dunlin::process
