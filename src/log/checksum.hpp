#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dunlin::log {

/// CRC-64 (ECMA-182, reflected, as in xz). `before` is the checksum of the bytes before these, or
/// 0.
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes,
                                     std::uint64_t before = 0) noexcept;

[[nodiscard]] inline std::uint64_t checksum(std::string_view text) noexcept {
  return checksum(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dunlin::log
