#include "support/process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dunlin::test {
namespace {

std::array<int, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error("socketpair failed");
  return ends;
}

[[noreturn]] void run(const std::function<int(Parent&)>& body, int socket) {
  int code = 1;
  {
    Parent parent(socket);
    try {
      code = body(parent);
    } catch (const std::exception& error) {
      parent.tell(std::string("error: ") + error.what());
    }
  }
  _exit(code);  // the test program's own end is not for its children
}

}  // namespace

Line::Line(Line&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), rest_(std::move(other.rest_)) {}

Line& Line::operator=(Line&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(rest_, other.rest_);
  return *this;
}

Line::~Line() {
  if (socket_ >= 0) close(socket_);
}

void Line::tell(std::string_view text) {
  std::string line(text);
  line += '\n';
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // nobody listens any more
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string Line::hear() {
  while (true) {
    const std::size_t end = rest_.find('\n');
    if (end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    std::array<char, 512> chunk;
    const ssize_t got = recv(socket_, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    rest_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Process::Process(const std::function<int(Parent&)>& body) : pid_(-1), line_(-1) {
  const std::array<int, 2> ends = socket_pair();
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    run(body, ends[1]);
  }
  close(ends[1]);
  line_ = Line(ends[0]);
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(std::exchange(other.reaped_, true)),
      status_(other.status_),
      line_(std::move(other.line_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(reaped_, other.reaped_);
  std::swap(status_, other.status_);
  line_ = std::move(other.line_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0) kill();
}

std::string Process::hear_all() {
  std::string all;
  for (std::string line = hear(); !line.empty(); line = hear()) all += line + '\n';
  return all;
}

void Process::signal(int number) const {
  if (!reaped_) ::kill(pid_, number);
}

void Process::kill() {
  signal(SIGKILL);
  exit_code();
}

int Process::exit_code() {
  while (!reaped_) {
    if (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
    reaped_ = true;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

}  // namespace dunlin::test
