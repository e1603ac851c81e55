#include "bench/harness/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {
namespace {

constexpr std::chrono::milliseconds kGrace{3'000};

/// A nameless file that holds the input: unlike a pipe it cannot fill up.
int file_with(const std::string& input) {
  const int fd = ::memfd_create("dunlin-bench-input", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, input.data(), input.size()) != static_cast<ssize_t>(input.size()) ||
      ::lseek(fd, 0, SEEK_SET) != 0) {
    throw Error(std::string("bench: cannot hold a program's input: ") + strerror(errno));
  }
  return fd;
}

pid_t start(const std::vector<std::string>& command, int input, int output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? pid : -error;
}

/// Reads until the other end is closed; false if that takes too long.
bool read_all(int fd, std::string& text, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, std::max(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 4096> part;
    const ssize_t bytes = ::read(fd, part.data(), part.size());
    if (bytes <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace

Outcome run_program(const std::vector<std::string>& command, const std::string& input,
                    std::chrono::milliseconds timeout) {
  std::array<int, 2> pipe{};
  const int in = file_with(input);
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw Error("bench: no pipe for " + command[0]);
  const pid_t pid = start(command, in, pipe[1]);
  ::close(in);
  ::close(pipe[1]);
  Outcome outcome;
  const bool in_time = pid > 0 && read_all(pipe[0], outcome.output, timeout);
  if (pid > 0 && !in_time) {
    // A launcher ends its own children when it is asked to; it cannot when it is killed.
    ::kill(-pid, SIGTERM);
    if (!read_all(pipe[0], outcome.output, kGrace)) ::kill(-pid, SIGKILL);
  }
  ::close(pipe[0]);
  if (pid <= 0) throw Error("bench: cannot start " + command[0] + ": " + strerror(-pid));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    throw Error("bench: " + command[0] + " did not finish within " +
                std::to_string(timeout.count()) + " ms and was ended");
  }
  outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

bool program_exists(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace dunlin::bench
