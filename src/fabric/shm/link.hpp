#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/mapping/mapping.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/shm/base_segment.hpp"
#include "fabric/shm/identity.hpp"
#include "fabric/shm/packet.hpp"

/// The connection of two members, and the handshake in which they identify themselves.
namespace dunlin::shm {

using mapping::create_mapping;
using mapping::map_peer;
using mapping::Mapping;
using mapping::MappingInfo;
using mapping::MappingKind;
using mapping::OwnMapping;
using mapping::PeerMapping;

/// The way to a member. The rings of members that formed the fabric together are in their bases; a
/// newcomer and a member make a pair of rings of their own, so that a ring never changes its owner.
struct Link {
  Descriptor socket = {};  // none: ourselves, no member, or lost while the group was forming
  Descriptor bell = {};
  std::shared_ptr<Mapping> base = {};
  std::shared_ptr<Mapping> inbox = {};   // for a newcomer's messages, or a member's to a newcomer
  std::shared_ptr<Mapping> outbox = {};  // for messages in the other direction
  pid_t pid = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t silence_timeout_ms = 0;
  bool needs_fence = false;
};

/// What a member has when it is connected to all others.
struct Attachment {
  Identity self;
  std::string place = {};  // for the description: "; rank 1 of 2 (...)"
  Access access;
  Descriptor listener;
  Descriptor bell;
  OwnMapping base;
  std::vector<Link> links;  // by rank
  std::vector<Rank> absent = {};
  std::vector<Rank> elsewhere = {};  // ranks that another backend reaches
};

/// The identity of `self`, for a packet of this type.
[[nodiscard]] Packet introduction(const Identity& self, PacketType type);

/// The base segment of `self`, with rings for so many members.
[[nodiscard]] OwnMapping make_base(const Identity& self, const Access& access, std::uint32_t rings);
/// Makes a ring for the messages of one member.
[[nodiscard]] OwnMapping make_ring(const Identity& self, const Access& access);
/// The ring in a mapping of make_ring().
[[nodiscard]] inline MessageRing* ring_in(const Mapping& mapping) noexcept {
  return reinterpret_cast<MessageRing*>(mapping.memory().data());
}

/// The number by which a newcomer and a member know that they speak of the same admission; never 0.
/// The kernel says which process may be a member, so this need not be a secret.
[[nodiscard]] std::uint64_t key_of(const Admission& admission) noexcept;

/// Takes what came with an introduction, hello or enter. `rings` says how many rings the base must
/// have; none: any number. Returns what is wrong with the introduction, or an empty text.
[[nodiscard]] std::string take_introduction(Link& link, Received& received, const Identity& self,
                                            Rank from, std::optional<std::uint32_t> rings);

}  // namespace dunlin::shm
