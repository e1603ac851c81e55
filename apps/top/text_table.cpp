#include "top/text_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "top/format.hpp"

namespace dunlin::top {
namespace {

constexpr std::size_t kGap = 2;

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::size_t missing = width - std::min(width, cell.size());
  const std::string blanks(missing, ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

void trim(std::string& line) { line.resize(line.find_last_not_of(' ') + 1); }

}  // namespace

std::size_t TextTable::width_of(std::size_t column) const {
  std::size_t width = columns_[column].heading.size();
  for (const Row& row : rows_) width = std::max(width, row.cells[column].size());
  return width;
}

std::vector<std::size_t> TextTable::columns_shown(const Page& page) const {
  std::vector<std::size_t> shown;
  std::size_t used = 0;
  const std::size_t pinned = std::min(pinned_, columns_.size());
  const std::size_t scrolled = columns_.size() - pinned;
  const std::size_t skipped = scrolled == 0 ? 0 : std::min(page.first_column, scrolled - 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i >= pinned && i < pinned + skipped) continue;
    used += kGap + width_of(i);
    const bool first = i == pinned + skipped;
    if (i >= pinned && !first && used > page.width) break;
    shown.push_back(i);
  }
  return shown;
}

void TextTable::print(std::vector<Line>& to, const Page& page) const {
  const std::vector<std::size_t> shown = columns_shown(page);
  Line heading{.style = Style::heading};
  std::vector<Line> lines(rows_.size());
  for (const std::size_t column : shown) {
    const std::size_t width = width_of(column);
    const auto add = [&](std::string& line, const std::string& cell) {
      line += std::string(kGap, ' ') + padded(cell, width, columns_[column].align);
    };
    add(heading.text, columns_[column].heading);
    for (std::size_t i = 0; i < rows_.size(); ++i) add(lines[i].text, rows_[i].cells[column]);
  }
  const auto finish = [&](Line line) {
    trim(line.text);
    line.text = shortened(std::move(line.text), page.width);
    to.push_back(std::move(line));
  };
  finish(std::move(heading));
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    lines[i].style = rows_[i].style;
    finish(std::move(lines[i]));
  }
  if (shown.size() == columns_.size()) return;
  const std::size_t hidden = columns_.size() - shown.size();
  std::string names = fmt::format("  {} more column{}:", hidden, hidden == 1 ? "" : "s");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (std::find(shown.begin(), shown.end(), i) == shown.end()) names += " " + columns_[i].heading;
  }
  finish({.text = std::move(names), .style = Style::faint});
}

}  // namespace dunlin::top
