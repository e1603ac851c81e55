#pragma once

#include <cstdint>
#include <string_view>

namespace dunlin::app::resp {

inline constexpr std::uint32_t kRedisSlots = 16'384;

/// The slot in which Redis Cluster has the key: the CRC16 (XMODEM) of the key, or of the part of it
/// within the first braces, if that is not empty. Our members do not place keys by it.
[[nodiscard]] std::uint32_t redis_slot_of(std::string_view key) noexcept;

}  // namespace dunlin::app::resp
