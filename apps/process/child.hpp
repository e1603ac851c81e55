#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "fabric/system.hpp"

/// Child processes of the command, the benchmarks and the tests. A child never outlives its Child
/// object, nor the thread that forked it: either of them ends it with SIGKILL.
///
///     Child child([] { return work() ? 0 : 1; });
///     Status status = child.wait();
///     if (!status.well()) throw Error("the child " + status.text());
namespace dunlin::process {

/// How a process ended.
class Status {
 public:
  /// `raw` is what waitpid() stored.
  explicit Status(int raw) noexcept : raw_(raw) {}

  /// The exit code, or minus the number of the signal that ended the process.
  [[nodiscard]] int exit_code() const noexcept;
  [[nodiscard]] bool well() const noexcept { return exit_code() == 0; }
  /// "exited with status 3", or "was ended by signal 9 (Killed)".
  [[nodiscard]] std::string text() const;

 private:
  int raw_;
};

class Child {
 public:
  Child() = default;  // no process
  /// Forks. The child runs `life`, whose result is the exit code. If `life` throws, the child
  /// writes the error to standard error and exits with 1. Throws Error if fork() fails.
  explicit Child(const std::function<int()>& life);
  Child(Child&& other) noexcept { swap(other); }
  Child& operator=(Child&& other) noexcept {
    swap(other);
    return *this;
  }
  /// Ends the process. In a process that did not fork it, this copy of the object does nothing.
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// The calling process has forked it, and has not yet waited for its end.
  [[nodiscard]] bool running() const noexcept;
  /// A pidfd, which is readable when the process has ended. The first call opens it.
  [[nodiscard]] int descriptor();

  void signal(int number) const noexcept;
  /// SIGKILL; returns when the kernel has torn the process down.
  void kill() noexcept;
  /// Waits for the end. Can be called again afterwards.
  Status wait() noexcept;
  /// How the process ended, if it has.
  [[nodiscard]] std::optional<Status> ended() noexcept;
  /// The most resident memory that the process, or one that it has waited for, had. Requires that
  /// it has ended.
  [[nodiscard]] std::uint64_t peak_bytes() const noexcept { return peak_bytes_; }

 private:
  void swap(Child& other) noexcept;
  void reap(int options) noexcept;

  pid_t parent_ = -1;
  pid_t pid_ = -1;
  Descriptor descriptor_;
  std::optional<Status> status_;
  std::uint64_t peak_bytes_ = 0;
};

/// A child calls this first if its parent alone is to decide what becomes of a Ctrl-C that both
/// receive: the child ignores SIGINT and SIGHUP. SIGTERM ends it, even if the parent blocks that.
void leave_terminal_to_parent() noexcept;

}  // namespace dunlin::process
