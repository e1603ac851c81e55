#include "fabric/shm/link.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace dunlin::shm {
namespace {

bool never_blocks(const Descriptor& descriptor) {
  const int flags = fcntl(descriptor.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

[[nodiscard]] MappingInfo info_of(const Identity& self, MappingKind kind, std::size_t bytes) {
  return {.kind = kind,
          .owner_pid = static_cast<std::uint32_t>(getpid()),
          .owner_uid = geteuid(),
          .owner_rank = self.rank,
          .members = self.members(),
          .incarnation = self.incarnation,
          .bytes = bytes,
          .fabric = self.fabric,
          .group = self.group,
          .member = self.names[self.rank]};
}

/// Whether the segment is of this kind, and belongs to the member that introduces itself.
[[nodiscard]] bool is_of(const PeerMapping& segment, MappingKind kind, const Packet& sender,
                         const std::string& group) {
  const MappingInfo& info = segment.info;
  return info.kind == kind && info.owner_rank == sender.rank && info.group == group &&
         info.incarnation == sender.incarnation;
}

[[nodiscard]] bool has_rings(const PeerMapping& base, std::optional<std::uint32_t> rings) {
  return rings ? base.info.bytes == BaseMapping::bytes(*rings)
               : base.info.bytes >= BaseMapping::bytes(0);
}

}  // namespace

std::uint64_t key_of(const Admission& admission) noexcept {
  std::uint64_t key = 0;
  std::memcpy(&key, admission.key.data(), sizeof key);
  return key | 1;
}

Packet introduction(const Identity& self, PacketType type) {
  Packet packet;
  packet.type = type;
  packet.rank = self.rank;
  packet.members = self.members();
  packet.names_hash = self.names_hash;
  packet.incarnation = self.incarnation;
  packet.silence_timeout_ms = self.silence_timeout_ms;
  packet.needs_fence = self.has_barriers ? 0 : 1;
  const std::string& name = self.names[self.rank];
  std::copy(self.group.begin(), self.group.end(), packet.group.begin());
  std::copy(name.begin(), name.end(), packet.member.begin());
  return packet;
}

OwnMapping make_base(const Identity& self, const Access& access, std::uint32_t rings) {
  return create_mapping(info_of(self, MappingKind::base, BaseMapping::bytes(rings)), access.group);
}

OwnMapping make_ring(const Identity& self, const Access& access) {
  return create_mapping(info_of(self, MappingKind::ring, sizeof(MessageRing)), access.group);
}

std::string take_introduction(Link& link, Received& received, const Identity& self, Rank from,
                              std::optional<std::uint32_t> rings) {
  const Packet& packet = received.packet;
  const bool enters = packet.type == PacketType::enter;
  if (packet.rank != from || received.descriptors.size() != (enters ? 3 : 2) ||
      !never_blocks(received.descriptors[1]))
    return "introduced itself wrongly";
  try {
    PeerMapping base = map_peer(received.descriptors[0]);
    if (!is_of(base, MappingKind::base, packet, self.group) || !has_rings(base, rings))
      return "sent a base segment that is not its own";
    if (enters) {
      PeerMapping outbox = map_peer(received.descriptors[2]);
      if (!is_of(outbox, MappingKind::ring, packet, self.group) ||
          outbox.info.bytes != sizeof(MessageRing))
        return "sent a message ring that is not its own";
      link.outbox = std::move(outbox.mapping);
    }
    link.base = std::move(base.mapping);
  } catch (const Error& error) {
    return std::string("sent a base segment that is no use: ") + error.what();
  }
  link.bell = std::move(received.descriptors[1]);
  link.incarnation = packet.incarnation;
  link.silence_timeout_ms = packet.silence_timeout_ms;
  link.needs_fence = packet.needs_fence != 0 || !self.has_barriers;
  return {};
}

}  // namespace dunlin::shm
