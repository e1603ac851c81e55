#include "signals.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::app {
namespace {

/// Leaves out signals that this process was started to ignore, as by nohup.
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void take_back_signals() noexcept {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      std::signal(number, SIG_DFL);
    }
  }
}

SignalGuard::SignalGuard() {
  const sigset_t set = ending_signals();
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw Error(fmt::format("signalfd: {}", std::strerror(errno)));
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

SignalGuard::~SignalGuard() {
  while (answered_ && caught() != nullptr) {  // an impatient user's second Ctrl-C adds nothing
  }
  const sigset_t set = ending_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  close(descriptor_);
}

const char* SignalGuard::caught() noexcept {
  signalfd_siginfo info{};
  if (read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return nullptr;
  answered_ = true;
  switch (info.ssi_signo) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    default:
      return "SIGHUP";
  }
}

}  // namespace dunlin::app
