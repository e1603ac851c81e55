#include "signals.hpp"

#include <csignal>
#include <initializer_list>

namespace dunlin::app {

void take_back_signals() noexcept {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      std::signal(number, SIG_DFL);
    }
  }
}

}  // namespace dunlin::app
