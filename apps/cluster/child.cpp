#include "cluster/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/prctl.h>
#include <unistd.h>

namespace dunlin::app {

std::string fork_fault() {
  const int error = errno;
  std::string text = std::strerror(error);
  if (error != EAGAIN) return text;
  return text + ": raise the number of processes that this user may have (ulimit -u)";
}

void belong_to(pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace dunlin::app
