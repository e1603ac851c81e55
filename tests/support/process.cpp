#include "support/process.hpp"

#include <array>
#include <cerrno>
#include <exception>

#include <sys/socket.h>

#include "fabric/system.hpp"
#include "support/protocol_state.hpp"

namespace dunlin::test {

void Line::send_line(std::string_view text) {
  std::string line(text);
  line += '\n';
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t sent = send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // nobody listens any more
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string Line::receive_line() {
  while (true) {
    const std::size_t end = rest_.find('\n');
    if (end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    std::array<char, 512> chunk;
    const ssize_t got = recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    rest_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Process::Process(const std::function<int(Parent&)>& body) {
  std::array<int, 2> ends{};
  checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  line_ = Line(ends[0]);
  Parent parent(ends[1]);
  child_ = process::Child([&] {
    line_ = Line();
    try {
      return body(parent);
    } catch (const std::exception& error) {
      parent.send_line(std::string("error: ") + error.what());
      return 1;
    }
  });
}

std::string Process::receive_line() {
  if (!line_.has_line())
    wait_readable(line_.descriptor(), "a line of process " + std::to_string(pid()));
  return line_.receive_line();
}

std::string Process::receive_line_with(std::string_view words) {
  std::string line;
  do line = receive_line();
  while (!line.empty() && line.find(words) == std::string::npos);
  return line;
}

int Process::exit_code() {
  if (child_.running())
    wait_readable(child_.descriptor(), "the end of process " + std::to_string(pid()));
  return child_.wait().exit_code();
}

std::string Process::receive_all_lines() {
  std::string all;
  for (std::string line = receive_line(); !line.empty(); line = receive_line()) all += line + '\n';
  return all;
}

}  // namespace dunlin::test
