#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/stream/frame.hpp"

/// The word before a frame on a connection: docs/formats/stream.md, "Over TCP".
namespace dunlin::tcp {

struct Prefix {
  std::uint32_t frame_bytes = 0;   // a multiple of 8, at most kMaxFrameBytes
  std::uint32_t behind_bytes = 0;  // behind the frame; zero bytes fill the last word
};
static_assert(sizeof(Prefix) == kWordBytes);

/// The most bytes that follow a frame.
inline constexpr std::size_t kMaxBehindBytes = std::size_t{1} << 18;
/// The most pieces of memory that one call hands to the kernel, or fills.
inline constexpr std::size_t kMaxPieces = 64;

[[nodiscard]] constexpr bool is_possible(const Prefix& prefix) noexcept {
  return prefix.frame_bytes != 0 && prefix.frame_bytes <= stream::kMaxFrameBytes &&
         prefix.frame_bytes % kWordBytes == 0 && prefix.behind_bytes <= kMaxBehindBytes;
}

/// How many bytes fill up the last word of that many bytes.
[[nodiscard]] constexpr std::size_t padding_of(std::size_t bytes) noexcept {
  return stream::whole_words(bytes) - bytes;
}

}  // namespace dunlin::tcp
