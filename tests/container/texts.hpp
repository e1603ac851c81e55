#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Values of any length whose bytes say whether they belong together.
namespace dunlin::test {

/// All bytes depend on the number's lowest byte, which is the first, and on the length.
inline std::string text_of(std::uint64_t number, std::size_t bytes) {
  std::string text(bytes, '\0');
  const std::uint64_t seed = number & 0xff;
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>((seed + i * (2 * seed + 1) + (i == 0 ? 0 : bytes)) & 0xff);
  return text;
}
[[nodiscard]] inline bool is_text(const std::string& text) {
  return text.empty() || text == text_of(static_cast<unsigned char>(text.front()), text.size());
}

}  // namespace dunlin::test
