#include "text.hpp"

#include <cstdint>

namespace dunlin::app {

namespace {

/// The bytes of the well-formed UTF-8 character at the front; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text.front());
  const std::size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((static_cast<std::uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

bool is_control(std::string_view character) {
  const auto lead = static_cast<std::uint8_t>(character.front());
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  if (character.size() == 2) return lead == 0xc2 && static_cast<std::uint8_t>(character[1]) < 0xa0;
  // Direction marks and line separators, which would turn the rest of a line around.
  return character.size() == 3 && lead == 0xe2 &&
         (static_cast<std::uint8_t>(character[1]) & 0xfe) == 0x80 &&
         ((static_cast<std::uint8_t>(character[2]) >= 0x8b &&
           static_cast<std::uint8_t>(character[2]) <= 0x8f) ||
          (static_cast<std::uint8_t>(character[2]) >= 0xa6 &&
           static_cast<std::uint8_t>(character[2]) <= 0xae));
}

}  // namespace

std::string printable(std::string_view text, std::size_t columns) {
  std::string clean;
  std::size_t count = 0;
  std::size_t cut = 0;  // where to end if there turns out to be more
  while (!text.empty()) {
    if (count == columns) {
      clean.resize(cut);
      return clean + "…";
    }
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    if (++count == columns) cut = clean.size();
    if (bytes == 0 || is_control(character)) {
      clean += "?";
    } else {
      clean += character;
    }
    text.remove_prefix(character.size());
  }
  return clean;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::size_t characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<std::uint8_t>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

std::string padded(std::string text, std::size_t columns) {
  const std::size_t width = characters(text);
  if (width < columns) text.append(columns - width, ' ');
  return text;
}

}  // namespace dunlin::app
