#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin {

/// FNV-1a: for bytes that no attacker has a reason to forge; equal on every machine. `hash` is the
/// hash of the bytes before these.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t hash = 0xcbf29ce484222325) noexcept {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// The 16 digits of a hash, as a part of a name.
[[nodiscard]] inline std::string hex(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15U];
  return text;
}

}  // namespace dunlin
