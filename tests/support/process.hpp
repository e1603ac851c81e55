#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "process/child.hpp"

/// Real processes for tests. Each runs a function, tells its parent lines of text, and is killed
/// and reaped at the latest when its Process object goes.
///
///     Process child([](Parent& parent) {
///       parent.tell("here");
///       return parent.receive_line() == "go" ? 0 : 1;
///     });
///     EXPECT_EQ(child.receive_line(), "here");
///     child.tell("go");
///     EXPECT_EQ(child.exit_code(), 0);
namespace dunlin::test {

/// A two-way line to another process.
class Line {
 public:
  Line() = default;
  explicit Line(int socket) noexcept : socket_(socket) {}

  void send_line(std::string_view text);
  /// Whether receive_line() need not wait.
  [[nodiscard]] bool has_line() const noexcept { return rest_.find('\n') != std::string::npos; }
  /// The next line; empty if the other process is gone.
  [[nodiscard]] std::string receive_line();
  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

 private:
  Descriptor socket_;
  std::string rest_;
};

using Parent = Line;

class Process {
 public:
  /// The function's result is the exit code. An exception tells the parent "error: ..." and exits
  /// with 1.
  explicit Process(const std::function<int(Parent&)>& body);

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  void send_line(std::string_view text) { line_.send_line(text); }
  /// A wait that takes too long, for a line or the process's end, prints the protocol state of the
  /// test's groups (protocol_state.hpp).
  [[nodiscard]] std::string receive_line();
  /// The next line that has these words; empty if none comes.
  [[nodiscard]] std::string receive_line_with(std::string_view words);
  /// Readable when there is something to hear.
  [[nodiscard]] int descriptor() const noexcept { return line_.descriptor(); }
  /// All further lines, until the process ends.
  [[nodiscard]] std::string receive_all_lines();

  void signal(int number) const { child_.signal(number); }
  /// Kills the process and waits until the kernel has torn it down.
  void kill() { child_.kill(); }
  /// Waits until the process ends: the exit code, or minus the signal that ended it.
  int exit_code();

 private:
  Line line_;
  process::Child child_;
};

}  // namespace dunlin::test
