#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Lines of text for a terminal or a file: their text, and their style.
namespace dunlin::top {

enum class Style { plain, title, heading, alarm, faint };

struct Line {
  std::string text = {};
  Style style = Style::plain;
};

/// The part to show of a table that is wider than the screen.
struct Page {
  std::size_t width = SIZE_MAX;  // unlimited
  std::size_t first_column = 0;  // of those that may be scrolled
  bool raw = false;              // multicasts, too, as the columns of their tables
};

enum class Align { left, right };

/// Columns as wide as what is in them. The first ones stay; those that follow are shown from
/// Page::first_column on, as far as there is room, and the others are named below.
class TextTable {
 public:
  void add_column(std::string heading, Align align) {
    columns_.push_back({std::move(heading), align});
  }
  /// The columns added so far stay where they are.
  void pin() { pinned_ = columns_.size(); }
  void add_row(std::vector<std::string> cells, Style style = Style::plain) {
    rows_.push_back({std::move(cells), style});
  }
  void print(std::vector<Line>& to, const Page& page) const;

 private:
  struct Column {
    std::string heading;
    Align align;
  };
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  [[nodiscard]] std::size_t width_of(std::size_t column) const;
  [[nodiscard]] std::vector<std::size_t> columns_shown(const Page& page) const;

  std::vector<Column> columns_ = {};
  std::vector<Row> rows_ = {};
  std::size_t pinned_ = SIZE_MAX;
};

}  // namespace dunlin::top
