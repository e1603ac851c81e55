#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <dunlin/table.hpp>

namespace dunlin::app {

/// A sentence in a row, cut off at its size.
template <std::size_t Parts>
using Text = std::array<Cell<std::array<char, 48>>, Parts>;

template <std::size_t Parts>
void store_text(Text<Parts>& cells, const std::string& text) {
  std::size_t at = 0;
  for (auto& cell : cells) {
    std::array<char, 48> part{};
    at += text.copy(part.data(), part.size(), std::min(at, text.size()));
    cell = part;
  }
}

template <std::size_t Parts>
[[nodiscard]] std::string load_text(const Text<Parts>& cells) {
  std::string text;
  for (const auto& cell : cells) {
    const std::array<char, 48> part = cell.load();
    text.append(part.begin(), std::find(part.begin(), part.end(), '\0'));
  }
  return text;
}

}  // namespace dunlin::app
