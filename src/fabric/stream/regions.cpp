#include <algorithm>

#include "fabric/stream/stream_fabric.hpp"

/// A region is known to peers by a number: its place here, and how often that place was announced.
/// So a number never means two regions, and an old one is told from one that never was.
namespace dunlin::stream {
namespace {

constexpr std::uint32_t kMaxGeneration = UINT32_MAX / kMaxRegions;
static_assert(kMaxRegions <= 256);

/// An announcement that is never read is kept for the peer; so many of them are too many.
constexpr std::size_t kMaxFramesWaiting = 1024;

}  // namespace

std::span<std::byte> StreamFabric::do_allocate(RegionId id, const RegionSpec& spec,
                                               bool observers_only) {
  const auto kind =
      observers_only ? segments::SegmentKind::published : segments::SegmentKind::region;
  locals_[id.index] = std::make_unique<Local>(presence_.segment(kind, spec), spec, observers_only);
  must_match_ = true;  // perhaps a peer has announced it already
  return locals_[id.index]->pages.memory();
}

void StreamFabric::do_announce(RegionId id) {
  Local& local = *locals_[id.index];
  if (local.number != 0) return;
  if (generations_[id.index] == kMaxGeneration)
    throw Error("region '" + local.spec.name + "' would be one too many: a fabric can announce " +
                std::to_string(kMaxGeneration) + " regions at one place in its life");
  check_retired(local.spec.name);
  if (reach_ != nullptr) local.key = reach_->open(local.pages.memory());
  local.number = ++generations_[id.index] * kMaxRegions + id.index;
  if (!contacts_[rank_].failing)
    remote(rank_, id) = {local.number, local.pages.memory().size(), local.key};
  for (Rank peer = 0; peer < size(); ++peer)
    if (peer != rank_ && !contacts_[peer].failing) send_announcement(peer, local);
}

void StreamFabric::send_announcement(Rank peer, const Local& local) {
  Outbox& outbox = contacts_[peer].outbox;
  if (outbox.waiting_frames() > kMaxFramesWaiting)
    return fail_soon(peer, "it does not read what it is told");
  const Announcement announcement{.epoch = local.spec.epoch,
                                  .layout_hash = local.spec.layout_hash,
                                  .key = local.key,
                                  .name = local.spec.name,
                                  .layout_text = local.spec.layout_text};
  const EntryHead head{.kind = EntryKind::announce,
                       .bytes = static_cast<std::uint32_t>(announcement.bytes()),
                       .region = local.number,
                       .value = local.pages.memory().size()};
  static_cast<void>(outbox.insist(entry_bytes(head)));
  announcement.encode(begin_entry(outbox.take(entry_bytes(head)), head));
  mark_unsent(peer);
  send_if_idle(peer);
}

void StreamFabric::do_release(RegionId id) noexcept {
  std::unique_ptr<Local> local = std::move(locals_[id.index]);
  if (getpid() != process_) return;  // a forked child's copy
  for (Rank peer = 0; peer < size(); ++peer) {
    remote(peer, id) = {};
    for (Offer& offer : contacts_[peer].offers)
      if (offer.state != Offer::State::waiting && offer.region == id)
        offer.state = Offer::State::waiting;
    if (local->number == 0 || peer == rank_ || contacts_[peer].failing) continue;
    say(peer, {.kind = EntryKind::withdraw, .region = local->number});
    send_if_idle(peer);
  }
  if ((reach_ != nullptr && local->number != 0) || is_source(*local)) retire(std::move(local));
}

StreamFabric::Fault StreamFabric::take_announcement(Contact& contact, const Entry& entry) {
  const auto announced = decode_announcement(entry.content());
  if (!announced) return "it announced a region in words that make no sense";
  if (entry.head.region < kMaxRegions) return "it announced a region without a number";
  if (entry.head.value == 0 || entry.head.value > kMaxRegionBytes)
    return "it announced a region of a size that no region has";
  if (contact.offers.size() == kMaxRegions) return "it announced more regions than there can be";
  for (const Offer& offer : contact.offers)
    if (offer.number == entry.head.region) return "it announced a region twice";
  contact.offers.push_back({.number = entry.head.region,
                            .bytes = entry.head.value,
                            .epoch = announced->epoch,
                            .layout_hash = announced->layout_hash,
                            .key = announced->key,
                            .name = std::string(announced->name),
                            .layout_text = std::string(announced->layout_text)});
  must_match_ = true;
  return nullptr;
}

StreamFabric::Fault StreamFabric::take_withdrawal(Rank from, Contact& contact,
                                                  const EntryHead& head) {
  std::vector<Offer>& offers = contact.offers;
  const auto offer = std::find_if(offers.begin(), offers.end(),
                                  [&](const Offer& o) { return o.number == head.region; });
  if (offer == offers.end()) return "it withdrew a region that it had not announced";
  const Offer withdrawn = std::move(*offer);
  offers.erase(offer);
  if (reach_ != nullptr)
    if (const Fault fault = let_go_soon(from, head.region)) return fault;
  if (withdrawn.state != Offer::State::connected) return nullptr;
  remote(from, withdrawn.region) = {};
  tell({.kind = Event::Kind::region_withdrawn,
        .peer = from,
        .region = withdrawn.region,
        .text = "the peer has released it"});
  return nullptr;
}

/// Brings together what peers have announced and what is allocated here, whichever came first.
void StreamFabric::match_offers() {
  must_match_ = false;
  for (Rank peer = 0; peer < size(); ++peer) {
    std::vector<Offer>& offers = contacts_[peer].offers;
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if (offers[i].state != Offer::State::waiting) continue;
      const RegionId id = local_region(offers[i]);
      if (id == RegionId{}) continue;
      const bool alike = offers[i].layout_hash == locals_[id.index]->spec.layout_hash;
      alike ? connect_region(peer, offers[i], id) : refuse_region(peer, offers[i], id);
    }
  }
}

RegionId StreamFabric::local_region(const Offer& offer) const noexcept {
  for (std::uint32_t index = 0; index < kMaxRegions; ++index) {
    const Local* local = locals_[index].get();
    if (local != nullptr && !local->observers_only && local->spec.epoch == offer.epoch &&
        local->spec.name == offer.name)
      return {index};
  }
  return {};
}

void StreamFabric::connect_region(Rank peer, Offer& offer, RegionId id) {
  remote(peer, id) = {offer.number, offer.bytes, offer.key};
  offer.state = Offer::State::connected;
  offer.region = id;
  tell({.kind = Event::Kind::region_connected, .peer = peer, .region = id, .text = {}});
}

void StreamFabric::refuse_region(Rank peer, Offer& offer, RegionId id) {
  const RegionSpec& spec = locals_[id.index]->spec;
  offer.state = Offer::State::refused;
  offer.region = id;
  const std::string text = "region '" + spec.name + "' has another layout at " + who(peer) +
                           " than here at " + who(rank_) + ": there [" + offer.layout_text +
                           "], here [" + spec.layout_text + "]";
  tell({.kind = Event::Kind::region_refused, .peer = peer, .region = id, .text = text});
}

}  // namespace dunlin::stream
