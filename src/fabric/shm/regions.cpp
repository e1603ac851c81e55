#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {

std::span<std::byte> ShmBackend::map(RegionId id, const LocalRegion& region) {
  const RegionSpec& spec = region.spec;
  OwnMapping segment =
      make_segment({.kind = region.observers_only ? MappingKind::published : MappingKind::region,
                    .owner_pid = static_cast<std::uint32_t>(getpid()),
                    .owner_uid = geteuid(),
                    .owner_rank = self_.rank,
                    .members = members_,
                    .incarnation = self_.incarnation,
                    .generation = spec.generation,
                    .layout_hash = spec.layout_hash,
                    .bytes = spec.bytes,
                    .fabric = self_.fabric,
                    .group = self_.group,
                    .member = self_.names[self_.rank],
                    .region = spec.name,
                    .layout_text = spec.layout_text});
  segments_[id.index] = std::make_shared<const OwnMapping>(std::move(segment));
  return segments_[id.index]->mapping->memory();
}

/// Makes a segment; if there is no memory, frees what rests in late_, and tries again.
OwnMapping ShmBackend::make_segment(const MappingInfo& info) {
  try {
    return create_mapping(info, access_.group);
  } catch (const Error&) {
    if (!late_.give_all_back()) throw;
  }
  return create_mapping(info, access_.group);
}

void ShmBackend::open(RegionId id, const LocalRegion&, RemoteRegion& own) {
  own.mapping = segments_[id.index]->mapping;
}

void ShmBackend::announce(Rank peer, RegionId id, const LocalRegion& region) {
  Packet packet;
  packet.type = PacketType::announce;
  packet.value = region.number;
  send_control(peer, packet, segments_[id.index]);
}

void ShmBackend::withdraw(Rank peer, RegionId, const LocalRegion& region) noexcept {
  Packet packet;
  packet.type = PacketType::withdraw;
  packet.value = region.number;
  send_control(peer, packet, nullptr);
}

void ShmBackend::unmap(RegionId id, const LocalRegion&) noexcept {
  const std::shared_ptr<const OwnMapping> segment = std::move(segments_[id.index]);
  late_.add(segment->mapping, core().recent_ns());
}

void ShmBackend::connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept {
  const auto& mapping = *static_cast<const Mapping*>(there.mapping.get());
  target(peer, id) = {mapping.memory().data(), mapping.memory().size()};
}

void ShmBackend::disconnect(Rank peer, RegionId id) noexcept { target(peer, id) = {}; }

void ShmBackend::let_go(Rank, RemoteRegion& there) noexcept {
  late_.add(std::static_pointer_cast<const Mapping>(std::move(there.mapping)), core().recent_ns());
}

void ShmBackend::take_announcement(Rank from, Received& received) {
  if (received.descriptors.size() != 1)
    return core().fail(from, "it announced a region without memory");
  PeerMapping segment;
  try {
    segment = map_peer(received.descriptors[0]);
  } catch (const Error& error) {
    return core().fail(from, std::string("it announced a region that is no use: ") + error.what());
  }
  const MappingInfo& info = segment.info;
  if (info.kind != MappingKind::region || info.incarnation != contacts_[from].link.incarnation ||
      info.owner_rank != from || info.group != self_.group)
    return core().fail(from, "it announced a segment that is not its own region");
  const FabricCore::Fault fault =
      core().on_announcement(from, {.number = received.packet.value,
                                    .bytes = segment.mapping->memory().size(),
                                    .generation = info.generation,
                                    .layout_hash = info.layout_hash,
                                    .name = info.region,
                                    .layout_text = info.layout_text,
                                    .mapping = std::move(segment.mapping)});
  if (fault != nullptr) core().fail(from, fault);
}

}  // namespace dunlin::shm
