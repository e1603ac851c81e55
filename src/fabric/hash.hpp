#pragma once

#include <cstdint>
#include <string_view>

namespace dunlin {

/// FNV-1a: for bytes that no attacker has a reason to forge; equal on every machine. `hash` is the
/// hash of the bytes before these.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t hash = 0xcbf29ce484222325) noexcept {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace dunlin
