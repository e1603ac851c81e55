#pragma once

#include <optional>
#include <string>

namespace dunlin::app::cast {

/// Lines of standard input, without waiting for any.
class Input {
 public:
  /// The next one without its end, if it is there, until pop(). Null otherwise. Throws Error if
  /// reading fails.
  [[nodiscard]] const std::string* front();
  void pop() noexcept { front_.reset(); }
  /// No more of them are there, or will be. The last one may have had no end.
  [[nodiscard]] bool over() const noexcept { return over_ && !front_ && text_.empty(); }

 private:
  void cut();
  bool read_more();

  std::optional<std::string> front_;
  std::string text_;
  std::size_t begin_ = 0;  // of what is left of it
  bool over_ = false;
};

}  // namespace dunlin::app::cast
