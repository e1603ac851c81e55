#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dunlin/limits.hpp>

namespace dunlin::app::cast {

/// Lines of standard input, without waiting for any.
class Input {
 public:
  explicit Input(std::size_t most_bytes = kMaxCastBytes) : most_bytes_(most_bytes) {}

  /// The next line without its end, valid until pop(); null if none is here. Reads at most once,
  /// as others wait to hear of us. Throws Error if reading fails, and for lines that are too long.
  [[nodiscard]] const std::string* front();
  void pop() noexcept { front_.reset(); }
  /// No more of them are there, or will be. The last one may have had no end.
  [[nodiscard]] bool over() const noexcept { return over_ && !front_ && text_.empty(); }

 private:
  void cut();
  bool read_more();

  std::size_t most_bytes_;  // of a line
  std::optional<std::string> front_;
  std::string text_;
  std::size_t begin_ = 0;     // where the unread part begins
  std::size_t searched_ = 0;  // up to here there is no end of a line
  bool over_ = false;
};

}  // namespace dunlin::app::cast
