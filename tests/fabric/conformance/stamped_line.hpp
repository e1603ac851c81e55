#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The check that the tearing tests stand on: a 64-byte line whose every word is a function of one
/// stamp, with the bare stamp in its first and last word. tearing_check.cpp proves that it can
/// fail.
namespace dunlin::conformance {

struct alignas(64) StampedLine {
  std::array<std::uint64_t, 8> words{};

  void stamp(std::uint64_t value) {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_of(value, i);
  }
  [[nodiscard]] static std::uint64_t word_of(std::uint64_t stamp, std::size_t at) {
    const bool outer = at == 0 || at == 7;
    return outer || stamp == 0 ? stamp : stamp * 0x9e3779b97f4a7c15 + at;
  }

  /// What a reader that knows only the stamps would take for a whole line.
  [[nodiscard]] bool accepted() const { return words.front() == words.back(); }
  [[nodiscard]] bool torn() const {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] != word_of(words.front(), i)) return true;
    }
    return false;
  }
};
static_assert(sizeof(StampedLine) == 64);

}  // namespace dunlin::conformance
