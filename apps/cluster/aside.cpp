#include "cluster/aside.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "cluster/child.hpp"
#include "fabric/system.hpp"

namespace dunlin::app {
namespace {

/// Lines, of which the first is empty if all went well.
[[noreturn]] void answer(const std::function<std::vector<std::string>()>& ask, int to) {
  std::string text;
  try {
    text = "\n";
    for (const std::string& line : ask()) text += line + "\n";
  } catch (const std::exception& error) {
    text = std::string(error.what()) + "\n";
  }
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = ::write(to, text.data() + sent, text.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    sent += static_cast<std::size_t>(written);
  }
  _exit(0);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 1024> part;
  while (true) {
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

std::vector<std::string> asked_aside(const std::function<std::vector<std::string>()>& ask) {
  std::array<int, 2> ends{};
  checked(pipe2(ends.data(), O_CLOEXEC), "pipe");
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  std::fflush(nullptr);  // or the child would write it, too
  const pid_t child = fork();
  if (child == 0) answer(ask, input.get());
  if (child < 0) throw Error("cannot start a process: " + fork_fault());
  input = Descriptor();
  const std::string text = read_all(output.get());
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end == std::string::npos ? text.size() : end + 1;
  }
  if (lines.empty()) throw Error("a process that was asked for networks has ended without a word");
  if (!lines.front().empty()) throw Error(lines.front());
  lines.erase(lines.begin());
  return lines;
}

}  // namespace dunlin::app
