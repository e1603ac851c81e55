#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text of unknown origin, made fit for a terminal.
namespace dunlin::app {

/// The text without control characters and broken UTF-8, cut to `columns` characters with an
/// ellipsis.
[[nodiscard]] std::string printable(std::string_view text, std::size_t columns = 60);
/// The text of printable(), in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// Text padded with blanks on the right to a width, counted in characters.
[[nodiscard]] std::string padded(std::string text, std::size_t columns);
[[nodiscard]] std::size_t characters(std::string_view text) noexcept;

}  // namespace dunlin::app
