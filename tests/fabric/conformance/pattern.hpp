#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Bytes that tell from which round they are, and where they belong.
namespace dunlin::conformance {

[[nodiscard]] inline std::byte pattern_byte(std::uint64_t round, std::size_t at) {
  const std::uint64_t mixed = (round * 0x9e3779b97f4a7c15 + at) * 0xbf58476d1ce4e5b9;
  return static_cast<std::byte>(mixed >> 56);
}

inline void fill_pattern(std::span<std::byte> bytes, std::uint64_t round) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_byte(round, i);
}

[[nodiscard]] inline bool has_pattern(std::span<const std::byte> bytes, std::uint64_t round) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_byte(round, i)) return false;
  }
  return true;
}

[[nodiscard]] inline std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) bytes[i] = static_cast<std::byte>(text[i]);
  return bytes;
}

[[nodiscard]] inline std::string text_of_bytes(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text.push_back(static_cast<char>(b));
  return text;
}

}  // namespace dunlin::conformance
