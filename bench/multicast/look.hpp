#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dunlin::bench {

/// Loads a byte of each cache line, as the least that a receiver does with a message: a line that
/// no receiver reads never leaves the cache of the core that wrote it.
inline void look_at(std::span<const std::byte> message) noexcept {
  unsigned sum = 0;
  for (std::size_t at = 0; at < message.size(); at += 64)
    sum += std::to_integer<unsigned>(message[at]);
  asm volatile("" : : "r"(sum));
}

}  // namespace dunlin::bench
