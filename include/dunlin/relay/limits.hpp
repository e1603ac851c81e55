#pragma once

#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>
#include <dunlin/pubsub/limits.hpp>

/// The limits of relays and their clients, beside those of topics.
namespace dunlin::relay {

inline constexpr std::size_t kMaxClients = std::size_t{1} << 14;  // at one relay, at a time
inline constexpr std::uint16_t kMaxEndpoints = 256;  // writers and readers of one client
inline constexpr std::size_t kMaxSampleBytes = std::size_t{1} << 20;      // encoded
inline constexpr std::size_t kMaxClientRingBytes = std::size_t{1} << 24;  // clients' topics
inline constexpr std::size_t kMaxRelays = 64;  // a client is told of so many
inline constexpr std::size_t kMaxSentenceBytes = 4096 + 2 * pubsub::kMaxTypeTextBytes;

static_assert(kMaxSampleBytes < kMaxCastBytes);
static_assert(kMaxClients < pubsub::kMaxTopicClients, "a topic remembers all clients of a relay");

}  // namespace dunlin::relay
