#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>

/// The limits of topics, beside those of the layers below (<dunlin/limits.hpp>).
namespace dunlin::pubsub {

inline constexpr std::size_t kMaxTopicNameBytes = 128;  // [A-Za-z0-9._/-]
inline constexpr std::size_t kMaxOrderNameBytes = 31;   // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxTopicsOfAnOrder = 1024;
inline constexpr std::size_t kMaxTypeTextBytes = 16384;        // of a topic's type, described
inline constexpr std::uint16_t kMaxTopicEndpoints = 1024;      // of a kind, one member, one topic
inline constexpr std::uint32_t kMaxReaderSamples = 1U << 24U;  // that a reader caches
inline constexpr std::uint32_t kMaxStoredSamples = 1U << 24U;  // of a topic that stores them
/// That a topic holds for late readers, though it keeps them no more (PUB-T5); or so many bytes.
inline constexpr std::size_t kMaxOvertakenSamples = 1U << 16U;
inline constexpr std::size_t kMaxOvertakenBytes = std::size_t{1} << 24U;
inline constexpr std::uint64_t kLeastLogTrimBytes = 4096;   // between two trims of a log
inline constexpr std::size_t kMaxTopicClients = 1U << 16U;  // that a topic remembers (RLY-1)

static_assert(kMaxTypeTextBytes < kMaxCastBytes, "an announcement is one message");

}  // namespace dunlin::pubsub
