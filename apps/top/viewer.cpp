#include "top/viewer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "top/format.hpp"

namespace dunlin::top {
namespace {

std::string key_of(const Group& group) {
  return group.name + '\n' + group.access + '\n' + group.fabric;
}

std::size_t body_rows(ScreenSize size) { return std::max<std::size_t>(size.rows, 2) - 1; }

}  // namespace

void Viewer::update(Sample sample) { sample_ = std::move(sample); }

const Group* Viewer::chosen() const {
  for (const Group& group : sample_.groups) {
    if (key_of(group) == chosen_) return &group;
  }
  return nullptr;
}

/// Goes from all groups in short through one group after the other, and back.
void Viewer::choose_next() {
  const Group* current = chosen();
  const std::size_t next =
      current == nullptr ? 0 : static_cast<std::size_t>(current - sample_.groups.data()) + 1;
  chosen_ = next < sample_.groups.size() ? key_of(sample_.groups[next]) : std::string();
  first_line_ = 0;
  first_column_ = 0;
}

bool Viewer::press(Key key, ScreenSize size) {
  const std::size_t page = body_rows(size);
  const std::size_t count = all_lines(size).size();
  const std::size_t last = count - std::min(count, page);
  std::size_t line = std::min(first_line_, last);
  switch (key) {
    case Key::quit:
      return false;
    case Key::up:
      line -= std::min<std::size_t>(line, 1);
      break;
    case Key::down:
      ++line;
      break;
    case Key::page_up:
      line -= std::min(line, page);
      break;
    case Key::page_down:
      line += page;
      break;
    case Key::home:
      line = 0;
      break;
    case Key::end:
      line = last;
      break;
    case Key::left:
      first_column_ -= std::min<std::size_t>(first_column_, 1);
      break;
    case Key::right:
      first_column_ = std::min(first_column_ + 1, kMaxColumns - 1);
      break;
    case Key::next:
      choose_next();
      return true;
    case Key::none:
      break;
  }
  first_line_ = std::min(line, last);
  return true;
}

std::vector<Line> Viewer::all_lines(ScreenSize size) const {
  const Page page{.width = size.columns, .first_column = first_column_, .raw = raw_};
  const Group* group = chosen();
  return group == nullptr ? describe(sample_, page) : describe_group(sample_, *group, page);
}

std::vector<Line> Viewer::lines(ScreenSize size) const {
  std::vector<Line> all = all_lines(size);
  const std::size_t page = body_rows(size);
  const std::size_t first = std::min(first_line_, all.size() - std::min(all.size(), page));
  const std::size_t end = std::min(all.size(), first + page);
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::string Viewer::status(ScreenSize size) const {
  std::string text = " q quit   arrows scroll";
  if (sample_.groups.size() > 1) text += "   tab next group";
  const std::size_t count = all_lines(size).size();
  const std::size_t page = body_rows(size);
  if (count > page) {
    const std::size_t first = std::min(first_line_, count - page);
    text += fmt::format("   lines {} to {} of {}", first + 1, first + page, count);
  }
  if (sample_.interval_s) {
    text += fmt::format("   rates over {}",
                        duration_text(static_cast<std::uint64_t>(*sample_.interval_s * 1e9)));
  }
  return text;
}

}  // namespace dunlin::top
