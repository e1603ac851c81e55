#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <dunlin/limits.hpp>

/// The state that each member publishes from the moment it joins: whether it sleeps, whether it is
/// alive, which peers have failed for it (docs/formats/shm-segment.md). On shared memory it is also
/// where peers leave word. Two cache lines between words with different writers, because processors
/// fetch lines in pairs.
namespace dunlin::mapping {

inline constexpr std::size_t kMarkWords = kMaxHostMembers / 64;
using Marks = std::array<std::uint64_t, kMarkWords>;

struct Base {
  // Peers set this after everything else; the owner clears it before everything else.
  alignas(128) std::uint64_t pending;
  // Peers set these: a packet waits in the owner's control channel; messages wait in the rings of
  // the marked ranks.
  alignas(128) std::uint64_t control_waiting;
  Marks message_waiting;
  // The number of the owner's sleep, while it sleeps or is about to. A peer that sees the number
  // rings the doorbell, and then changes it to 0.
  alignas(128) std::uint64_t sleeping;
  // The owner counts this up as long as it polls.
  alignas(128) std::uint64_t heartbeats;
  // These are for observers only: the owner's clock at its last watch, and which peers it holds for
  // failed.
  std::uint64_t last_watch_ns;
  Marks failed_peers;
};

static_assert(kMaxHostMembers % 64 == 0);
static_assert(kMaxStreamMembers <= kMaxHostMembers, "a member of any group has its mark");
static_assert(offsetof(Base, pending) == 0);
static_assert(offsetof(Base, control_waiting) == 128);
static_assert(offsetof(Base, message_waiting) == 136);
static_assert(offsetof(Base, sleeping) == 256);
static_assert(offsetof(Base, heartbeats) == 384);
static_assert(offsetof(Base, last_watch_ns) == 392);
static_assert(offsetof(Base, failed_peers) == 400);
static_assert(sizeof(Base) == 512);

}  // namespace dunlin::mapping
