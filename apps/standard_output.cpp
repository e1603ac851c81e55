#include "standard_output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::app {

namespace {

[[noreturn]] void complain(const char* why) { throw Error(std::string("standard output: ") + why); }

}  // namespace

void hold_standard_descriptors() noexcept {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    // The wrong way round, so that using it fails as it would have; the lowest number is taken.
    (void)open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void say(std::string_view text) {
  const bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!taken || std::fflush(stdout) != 0) complain(std::strerror(errno));
}

void demand_output_arrived() {
  if (std::fflush(stdout) != 0) complain(std::strerror(errno));
  if (std::ferror(stdout) != 0) complain("something printed was lost");
}

}  // namespace dunlin::app
