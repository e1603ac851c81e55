#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>

/// The limits of topics, beside those of the layers below (<dunlin/limits.hpp>).
namespace dunlin::pubsub {

inline constexpr std::size_t kMaxTopicNameBytes = 128;  // [A-Za-z0-9._/-]
inline constexpr std::size_t kMaxOrderNameBytes = 31;   // [A-Za-z0-9._-]
inline constexpr std::size_t kMaxTopicsOfAnOrder = 1024;
inline constexpr std::size_t kMaxTypeTextBytes = 16384;    // the description of a topic's type
inline constexpr std::uint16_t kMaxTopicEndpoints = 1024;  // one member has in a topic, of one kind
inline constexpr std::uint32_t kMaxReaderSamples = 1U << 24U;  // in a reader's cache
inline constexpr std::uint32_t kMaxStoredSamples = 1U << 24U;  // in the storage of a topic
/// Samples that a topic holds for late readers although it keeps them no more (PUB-T5); or so many
/// bytes.
inline constexpr std::size_t kMaxOvertakenSamples = 1U << 16U;
inline constexpr std::size_t kMaxOvertakenBytes = std::size_t{1} << 24U;
inline constexpr std::uint64_t kLeastLogTrimBytes = 4096;   // between two trims of a log
inline constexpr std::size_t kMaxTopicClients = 1U << 16U;  // remembered by a topic (RLY-1)

static_assert(kMaxTypeTextBytes < kMaxCastBytes, "an announcement is one message");

}  // namespace dunlin::pubsub
