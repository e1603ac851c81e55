#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <dunlin/fabric.hpp>

#include "fabric/shm/message_ring.hpp"

/// What each member shares with its peers from the moment it joins: how to wake it, whether it is
/// alive, and where to put messages for it (docs/formats/shm-segment.md). Two cache lines between
/// words with different writers, because processors fetch lines in pairs.
namespace dunlin::shm {

inline constexpr std::size_t kMarkWords = kMaxHostMembers / 64;
using Marks = std::array<std::uint64_t, kMarkWords>;

struct BaseSegment {
  // Set by peers after everything else, cleared by the owner before everything else.
  alignas(128) std::uint64_t pending;
  // Set by peers: a packet waits in the owner's control channel; messages wait in the ring of the
  // marked ranks.
  alignas(128) std::uint64_t control_waiting;
  Marks message_waiting;
  // While the owner sleeps or is about to, the number of this sleep; whoever sees it rings the
  // doorbell, and then changes it to 0.
  alignas(128) std::uint64_t sleeping;
  // Counted up by the owner as long as it polls.
  alignas(128) std::uint64_t heartbeats;
  // For observers only: the owner's clock at its last watch, and which peers it holds for failed.
  std::uint64_t last_watch_ns;
  Marks failed_peers;

  /// Behind this struct: a ring for each member as a sender.
  [[nodiscard]] MessageRing& ring(Rank sender) noexcept {
    return reinterpret_cast<MessageRing*>(this + 1)[sender];
  }
  [[nodiscard]] static std::size_t bytes(std::uint32_t members) noexcept {
    return sizeof(BaseSegment) + members * sizeof(MessageRing);
  }
};

static_assert(kMaxHostMembers % 64 == 0);
static_assert(offsetof(BaseSegment, pending) == 0);
static_assert(offsetof(BaseSegment, control_waiting) == 128);
static_assert(offsetof(BaseSegment, message_waiting) == 136);
static_assert(offsetof(BaseSegment, sleeping) == 256);
static_assert(offsetof(BaseSegment, heartbeats) == 384);
static_assert(offsetof(BaseSegment, last_watch_ns) == 392);
static_assert(offsetof(BaseSegment, failed_peers) == 400);
static_assert(sizeof(BaseSegment) == 512);

}  // namespace dunlin::shm
