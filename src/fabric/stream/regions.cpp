#include "fabric/stream/stream_backend.hpp"

namespace dunlin::stream {
namespace {

/// The most frames that wait for a peer. An announcement that is never read is kept for the peer; a
/// peer with more of them than this fails.
constexpr std::size_t kMaxFramesWaiting = 1024;

}  // namespace

std::span<std::byte> StreamBackend::map(RegionId id, const LocalRegion& region) {
  const auto kind =
      region.observers_only ? mapping::MappingKind::published : mapping::MappingKind::region;
  memories_[id.index] = std::make_unique<Memory>(registry_->segment(kind, region.spec));
  return memories_[id.index]->pages.memory();
}

void StreamBackend::adopt(RegionId id, std::shared_ptr<const mapping::OwnMapping> segment) {
  memories_[id.index] = std::make_unique<Memory>(std::move(segment));
}

void StreamBackend::open(RegionId id, const LocalRegion& region, RemoteRegion& own) {
  if (region.number > UINT32_MAX)
    throw Error("region '" + region.spec.name + "' would be one too many: a fabric can announce " +
                std::to_string(UINT32_MAX / kMaxRegions) + " regions at one place in its life");
  check_retired(region.spec.name);
  Memory& memory = *memories_[id.index];
  if (device_ != nullptr) memory.key = device_->open(memory.pages.memory());
  memory.number = static_cast<std::uint32_t>(region.number);
  own.address = memory.key.address;
  own.key = memory.key.key;
}

void StreamBackend::announce(Rank peer, RegionId id, const LocalRegion& region) {
  Outbox& outbox = contacts_[peer].outbox;
  if (outbox.waiting_frames() > kMaxFramesWaiting)
    return core().fail_soon(peer, "it does not read what it is told");
  const Announcement announcement{.generation = region.spec.generation,
                                  .layout_hash = region.spec.layout_hash,
                                  .key = memories_[id.index]->key,
                                  .name = region.spec.name,
                                  .layout_text = region.spec.layout_text};
  const EntryHead head{.kind = EntryKind::announce,
                       .bytes = static_cast<std::uint32_t>(announcement.bytes()),
                       .region = memories_[id.index]->number,
                       .value = region.spec.bytes};
  static_cast<void>(outbox.insist(entry_bytes(head)));
  announcement.encode(begin_entry(outbox.take(entry_bytes(head)), head));
  mark_unsent(peer);
  send_if_idle(peer);
}

void StreamBackend::withdraw(Rank peer, RegionId id, const LocalRegion&) noexcept {
  send_entry(peer, {.kind = EntryKind::withdraw, .region = memories_[id.index]->number});
  send_if_idle(peer);
}

void StreamBackend::unmap(RegionId id, const LocalRegion& region) noexcept {
  std::unique_ptr<Memory> memory = std::move(memories_[id.index]);
  if (!core().in_own_process()) return;
  transport_->forget_places(memory->pages.memory());
  for (Contact& contact : contacts_)
    if (carries_behind_ && contact.outbox.unsettled_bytes() > 0) contact.outbox.settle();
  if ((device_ != nullptr && region.number != 0) || is_source(*memory))
    retire(std::move(memory), region);
}

void StreamBackend::connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept {
  if (remotes_[peer] == nullptr) remotes_[peer] = std::make_unique<Remote[]>(kMaxRegions);
  remotes_[peer][id.index] = {static_cast<std::uint32_t>(there.number),
                              there.bytes,
                              {.address = there.address, .key = there.key}};
}

void StreamBackend::disconnect(Rank peer, RegionId id) noexcept {
  if (remotes_[peer] != nullptr) remotes_[peer][id.index] = {};
}

StreamBackend::Fault StreamBackend::take_announcement(Rank from, const Entry& entry) {
  const auto announced = decode_announcement(entry.content());
  if (!announced) return "it announced a region in words that make no sense";
  if (entry.head.region < kMaxRegions) return "it announced a region without a number";
  if (entry.head.value == 0 || entry.head.value > kMaxRegionBytes)
    return "it announced a region of a size that no region has";
  return core().on_announcement(from, {.number = entry.head.region,
                                       .bytes = entry.head.value,
                                       .generation = announced->generation,
                                       .layout_hash = announced->layout_hash,
                                       .name = std::string(announced->name),
                                       .layout_text = std::string(announced->layout_text),
                                       .address = announced->key.address,
                                       .key = announced->key.key});
}

}  // namespace dunlin::stream
