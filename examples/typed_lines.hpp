#pragma once

#include <optional>
#include <string>

#include <poll.h>
#include <unistd.h>

/// Lines on standard input, for a program that must not wait for them: it has a group to poll.
class TypedLines {
 public:
  /// The next one, if all of it is there, until pop(). Null otherwise.
  const std::string* front() {
    if (!front_) front_ = cut();
    if (!front_ && read_more()) front_ = cut();
    return front_ ? &*front_ : nullptr;
  }
  void pop() { front_.reset(); }
  /// Whether there are no more, and will be none.
  [[nodiscard]] bool over() const { return over_ && !front_; }

 private:
  std::optional<std::string> cut() {
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }
  bool read_more() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (over_ || poll(&input, 1, 0) <= 0) return false;
    char buffer[4096];
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    over_ = bytes <= 0;
    if (!over_) text_.append(buffer, static_cast<std::size_t>(bytes));
    return !over_;
  }

  std::optional<std::string> front_;
  std::string text_;
  bool over_ = false;
};
