#include "support/protocol_state.hpp"

#include <cerrno>
#include <exception>
#include <iostream>

#include <poll.h>

#include "process/program.hpp"
#include "support/fresh_group.hpp"

namespace dunlin::test {
namespace {

constexpr int kTooLongMs = 60'000;
constexpr int kMostGroups = 16;  // the latest ones; those of earlier tests are gone

}  // namespace

void print_protocol_state(const std::string& waits_for) {
  std::cerr << "still waits for " << waits_for << "; the groups of this test:\n";
  for (const std::string& group : fresh_groups(kMostGroups)) {
    try {
      const process::Outcome shown = process::run(
          {.command = {DUNLIN_PROGRAM, "top", "--once", "--no-rates", "--raw", "--group", group}});
      if (shown.status.well()) std::cerr << shown.output;  // otherwise the group is gone
    } catch (const std::exception& error) {
      std::cerr << "group " << group << " cannot be shown: " << error.what() << '\n';
    }
  }
  std::cerr << std::flush;
}

void wait_readable(int descriptor, const std::string& waits_for) {
  pollfd awaited{.fd = descriptor, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = poll(&awaited, 1, kTooLongMs)) < 0 && errno == EINTR) {
  }
  if (ready == 0) print_protocol_state(waits_for);
}

}  // namespace dunlin::test
