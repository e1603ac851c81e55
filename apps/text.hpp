#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text of unknown origin, made fit for a terminal.
namespace dunlin::app {

/// Without control characters or broken UTF-8, and at most `columns` characters long (a longer one
/// ends in an ellipsis).
[[nodiscard]] std::string printable(std::string_view text, std::size_t columns = 60);
/// The same in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// Text padded with blanks on the right to a width, counted in characters.
[[nodiscard]] std::string padded(std::string text, std::size_t columns);
[[nodiscard]] std::size_t characters(std::string_view text) noexcept;

}  // namespace dunlin::app
