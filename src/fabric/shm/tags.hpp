#pragma once

#include <cstdint>

/// What an epoll event of the fabric is about: a peer's rank, or one of these.
namespace dunlin::shm {

inline constexpr std::uint64_t kBellTag = UINT64_MAX;
inline constexpr std::uint64_t kListenerTag = UINT64_MAX - 1;
inline constexpr std::uint64_t kArrivalTag = UINT64_MAX - 2;
inline constexpr std::uint64_t kAlarmTag = UINT64_MAX - 3;

}  // namespace dunlin::shm
