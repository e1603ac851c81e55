#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "top/sample.hpp"
#include "top/terminal.hpp"
#include "top/text.hpp"

namespace dunlin::top {

/// Which part of a sample the user looks at, and how keys change that; knows no terminal.
class Viewer {
 public:
  explicit Viewer(bool raw = false) : raw_(raw) {}
  /// Takes the newest sample; its groups may be others than before.
  void update(Sample sample);
  /// False if the user wants to leave.
  [[nodiscard]] bool press(Key key, ScreenSize size);

  /// The lines that fit on the screen, but for the last one, which is the status.
  [[nodiscard]] std::vector<Line> lines(ScreenSize size) const;
  [[nodiscard]] std::string status(ScreenSize size) const;
  [[nodiscard]] const Sample& sample() const noexcept { return sample_; }

 private:
  [[nodiscard]] std::vector<Line> all_lines(ScreenSize size) const;
  [[nodiscard]] const Group* chosen() const;
  void choose_next();

  bool raw_;
  Sample sample_;
  std::string chosen_;  // key of the group looked at; empty: whatever describe() shows
  std::size_t first_line_ = 0;
  std::size_t first_column_ = 0;
};

}  // namespace dunlin::top
