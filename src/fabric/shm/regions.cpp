#include "fabric/shm/shm_fabric.hpp"

namespace dunlin::shm {

std::span<std::byte> ShmFabric::do_allocate(RegionId id, const RegionSpec& spec,
                                            bool observers_only) {
  OwnSegment segment =
      make_segment({.kind = observers_only ? SegmentKind::published : SegmentKind::region,
                    .owner_pid = static_cast<std::uint32_t>(getpid()),
                    .owner_uid = geteuid(),
                    .owner_rank = rank_,
                    .members = size(),
                    .incarnation = self_.incarnation,
                    .epoch = spec.epoch,
                    .layout_hash = spec.layout_hash,
                    .bytes = spec.bytes,
                    .fabric = "shm",
                    .group = group_,
                    .member = peers_[rank_].name,
                    .region = spec.name,
                    .layout_text = spec.layout_text});
  locals_[id.index] = std::make_unique<Local>(
      Local{std::make_shared<OwnSegment>(std::move(segment)), spec, observers_only});
  must_match_ = true;  // perhaps a peer has announced it already
  attend_soon();
  return locals_[id.index]->segment->mapping->memory();
}

/// What rests in late_ may be what is missing.
OwnSegment ShmFabric::make_segment(const SegmentInfo& info) {
  try {
    return create_segment(info, access_.group);
  } catch (const Error&) {
    if (!late_.give_all_back()) throw;
  }
  return create_segment(info, access_.group);
}

void ShmFabric::do_announce(RegionId id) {
  Local& local = *locals_[id.index];
  if (local.number != 0) return;
  local.number = ++announcements_;
  const std::span<std::byte> memory = local.segment->mapping->memory();
  remote(rank_, id) = {memory.data(), memory.size()};
  Packet packet;
  packet.type = PacketType::announce;
  packet.value = local.number;
  for (Rank peer = 0; peer < size(); ++peer) send_control(peer, packet, local.segment);
}

void ShmFabric::do_release(RegionId id) noexcept {
  const std::unique_ptr<Local> local = std::move(locals_[id.index]);
  for (Rank peer = 0; peer < size(); ++peer) {
    remote(peer, id) = {};
    for (Offer& offer : contacts_[peer].offers)
      if (offer.state != Offer::State::waiting && offer.region == id)
        offer.state = Offer::State::waiting;
  }
  late_.add(local->segment->mapping, recent_ns_);
  if (local->number == 0 || !in_own_process()) return;
  Packet packet;
  packet.type = PacketType::withdraw;
  packet.value = local->number;
  for (Rank peer = 0; peer < size(); ++peer) send_control(peer, packet, nullptr);
}

void ShmFabric::take_announcement(Rank from, Received& received) {
  Contact& contact = contacts_[from];
  if (received.descriptors.size() != 1) return fail(from, "it announced a region without memory");
  if (contact.offers.size() == kMaxRegions)
    return fail(from, "it announced more regions than a fabric can have");
  PeerSegment segment = map_peer_segment(received.descriptors[0]);
  const SegmentInfo& info = segment.info;
  if (info.kind != SegmentKind::region || info.incarnation != contact.link.incarnation ||
      info.owner_rank != from || info.group != group_)
    return fail(from, "it announced a segment that is not its own region");
  contact.offers.push_back({received.packet.value, std::move(segment)});
  must_match_ = true;
}

void ShmFabric::take_withdrawal(Rank from, std::uint64_t number) {
  std::vector<Offer>& offers = contacts_[from].offers;
  const auto offer = std::find_if(offers.begin(), offers.end(),
                                  [&](const Offer& o) { return o.number == number; });
  if (offer == offers.end()) return;
  Offer withdrawn = std::move(*offer);
  offers.erase(offer);
  late_.add(std::move(withdrawn.segment.mapping), recent_ns_);
  if (withdrawn.state != Offer::State::connected) return;
  remote(from, withdrawn.region) = {};
  tell({.kind = Event::Kind::region_withdrawn,
        .peer = from,
        .region = withdrawn.region,
        .text = "the peer has released it"});
}

/// Brings together what peers have announced and what is allocated here, whichever came first.
void ShmFabric::match_offers() {
  must_match_ = false;
  for (Rank peer = 0; peer < size(); ++peer) {
    std::vector<Offer>& offers = contacts_[peer].offers;
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if (offers[i].state != Offer::State::waiting) continue;
      const RegionId id = local_region(offers[i].segment.info);
      if (id == RegionId{}) continue;
      const bool alike = offers[i].segment.info.layout_hash == locals_[id.index]->spec.layout_hash;
      alike ? connect_region(peer, offers[i], id) : refuse_region(peer, offers[i], id);
    }
  }
}

RegionId ShmFabric::local_region(const SegmentInfo& info) const noexcept {
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) {
    const Local* local = locals_[index].get();
    if (local != nullptr && !local->observers_only && local->spec.epoch == info.epoch &&
        local->spec.name == info.region)
      return {index};
  }
  return {};
}

void ShmFabric::connect_region(Rank peer, Offer& offer, RegionId id) {
  const std::span<std::byte> memory = offer.segment.mapping->memory();
  remote(peer, id) = {memory.data(), memory.size()};
  offer.state = Offer::State::connected;
  offer.region = id;
  tell({.kind = Event::Kind::region_connected, .peer = peer, .region = id, .text = {}});
}

void ShmFabric::refuse_region(Rank peer, Offer& offer, RegionId id) {
  const RegionSpec& spec = locals_[id.index]->spec;
  offer.state = Offer::State::refused;
  offer.region = id;
  const std::string text = "region '" + spec.name + "' has another layout at " + who(peer) +
                           " than here at " + who(rank_) + ": there [" +
                           offer.segment.info.layout_text + "], here [" + spec.layout_text + "]";
  tell({.kind = Event::Kind::region_refused, .peer = peer, .region = id, .text = text});
}

}  // namespace dunlin::shm
