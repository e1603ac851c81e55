#include <algorithm>
#include <string>

#include "assert.hpp"
#include "fabric/core/core.hpp"
#include "fabric/layout_text.hpp"
#include "fabric/names.hpp"

/// Regions: memory of this member, and what peers announce of theirs. Regions of one name and
/// generation belong together, whichever side came first.
///
/// Peers know a region by a number: its index here, and how often that index was announced. So a
/// number never means two regions, and an old number is told from one that never was.
namespace dunlin {
namespace {

void check_spec(const RegionSpec& spec) {
  check_region_name(spec.name);
  const std::string region = "region '" + spec.name + "' ";
  if (spec.bytes == 0) throw Error(region + "has no bytes: ask for at least one");
  if (spec.bytes > kMaxRegionBytes)
    throw Error(region + "would have " + std::to_string(spec.bytes) + " bytes; the limit is " +
                std::to_string(kMaxRegionBytes) + " (kMaxRegionBytes)");
  if (spec.layout_text.size() > kMaxLayoutTextBytes)
    throw Error(region + "has a layout text of " + std::to_string(spec.layout_text.size()) +
                " bytes; the limit is " + std::to_string(kMaxLayoutTextBytes) +
                " (kMaxLayoutTextBytes)");
}

std::uint64_t& count_of(std::vector<std::pair<std::string, std::uint64_t>>& counts,
                        const std::string& name) {
  for (auto& [counted, count] : counts)
    if (counted == name) return count;
  return counts.emplace_back(name, 0).second;
}

}  // namespace

// --- our own -------------------------------------------------------------------------------------

Region FabricCore::make_region(RegionSpec spec, bool observers_only) {
  require_own_process();
  check_spec(spec);
  std::uint64_t& allocations = count_of(observers_only ? published_ : allocations_, spec.name);
  if (spec.generation == 0) spec.generation = allocations + 1;
  const RegionId id = free_slot(spec.name, spec.generation, observers_only);
  LocalRegion local{.spec = std::move(spec), .taken = true, .observers_only = observers_only};
  const std::span<std::byte> memory = backend_->map(id, local);
  regions_[id.index] = std::move(local);
  next_slot_ = id.index + 1;
  ++allocations;
  match_soon(id);
  return {fabric_, id, memory};
}

bool FabricCore::has_region(std::string_view name) const noexcept {
  return std::any_of(regions_.begin(), regions_.end(), [&](const LocalRegion& region) {
    return region.taken && !region.observers_only && region.spec.name == name;
  });
}

/// Slots are taken in turn, so that the id of a released region stays unknown for long.
RegionId FabricCore::free_slot(const std::string& name, std::uint64_t generation,
                               bool observers_only) {
  for (const LocalRegion& region : regions_)
    if (region.taken && region.observers_only == observers_only &&
        region.spec.generation == generation && region.spec.name == name)
      throw Error("region '" + name + "' of generation " + std::to_string(generation) +
                  " exists already in this process: release it first, or take another generation");
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    const std::uint32_t index = (next_slot_ + i) % kMaxRegions;
    if (index < regions_.size() && regions_[index].taken) continue;
    if (index >= regions_.size()) {
      regions_.resize(index + 1);
      announcements_.resize(index + 1);
    }
    return {index};
  }
  throw Error("region '" + name + "' would be one too many: a fabric has at most " +
              std::to_string(kMaxRegions) + " regions at a time (kMaxRegions)");
}

/// Announces the region to these peers (`to`); null: to all.
void FabricCore::announce(const Region& region, const std::span<const Rank>* to) {
  if (region.fabric_ != &fabric_)
    throw Error("only a region that is allocated on this fabric can be announced to its peers");
  const RegionId id = region.id_;
  LocalRegion& local = regions_[id.index];
  if (local.observers_only)
    throw Error("region '" + local.spec.name +
                "' was published for observers: it cannot be announced to peers, use allocate() "
                "for that");
  if (local.number != 0) return;
  require_own_process();
  if (to != nullptr) local.audience.emplace(to->begin(), to->end());
  open_region(id);
  for (Rank peer = 0; peer < size(); ++peer)
    if (can_announce(peer, local)) backend_->announce(peer, id, local);
}

/// Whether the peer is here, and may know of the region.
bool FabricCore::can_announce(Rank peer, const LocalRegion& region) const {
  return peer != rank() && linked(peer) && !states_[peer].failing && region.is_for(peer);
}

void FabricCore::open_region(RegionId id) {
  LocalRegion& local = regions_[id.index];
  LocalRegion numbered = local;
  numbered.number = (announcements_[id.index] + 1) * kMaxRegions + id.index;
  RemoteRegion own{.number = numbered.number, .bytes = local.spec.bytes};
  backend_->open(id, numbered, own);
  ++announcements_[id.index];
  local.number = numbered.number;
  if (states_[rank()].failing) return;
  backend_->connect(rank(), id, own);
  fabric_.peers_[rank()].connect(id);
}

void FabricCore::release(RegionId id) noexcept {
  DUNLIN_ASSERT_ALWAYS(regions_[id.index].taken, "a region is released once");
  const LocalRegion released = std::exchange(regions_[id.index], {});
  for (Rank peer = 0; peer < size(); ++peer) {
    disconnect(peer, id);
    for (Offer& offer : states_[peer].offers)
      if (offer.state != Offer::State::waiting && offer.here == id)
        offer.state = Offer::State::waiting;
    const bool tells = released.number != 0 && can_announce(peer, released);
    if (tells && in_own_process()) backend_->withdraw(peer, id, released);
  }
  backend_->unmap(id, released);
}

// --- the peers' ----------------------------------------------------------------------------------

FabricCore::Fault FabricCore::on_announcement(Rank from, std::shared_ptr<RemoteRegion> region) {
  std::vector<Offer>& offers = states_[from].offers;
  if (offers.size() == kMaxRegions) return "it announced more regions than there can be";
  if (find_offer(from, region->number) != nullptr) return "it announced a region twice";
  const std::uint64_t number = region->number;
  offers.push_back({.there = std::move(region)});
  match(from, number);
  return nullptr;
}

FabricCore::Fault FabricCore::on_withdrawal(Rank from, std::uint64_t number) {
  match_waiting();  // a refusal is still announced, though the peer has gone
  Offer* const offer = find_offer(from, number);
  if (offer == nullptr) return "it withdrew a region that it had not announced";
  Offer withdrawn = std::move(*offer);
  std::vector<Offer>& offers = states_[from].offers;
  offers.erase(offers.begin() + (offer - offers.data()));
  const bool was_connected = withdrawn.state == Offer::State::connected;
  if (was_connected) disconnect(from, withdrawn.here);
  backend_->let_go(from, *withdrawn.there);
  if (was_connected)
    emit({.kind = Event::Kind::region_withdrawn,
          .peer = from,
          .region = withdrawn.here,
          .text = "the peer has released it"});
  return nullptr;
}

FabricCore::Offer* FabricCore::find_offer(Rank peer, std::uint64_t number) noexcept {
  for (Offer& offer : states_[peer].offers)
    if (offer.there->number == number) return &offer;
  return nullptr;
}

RegionId FabricCore::local_region(const RemoteRegion& there) const noexcept {
  for (std::uint32_t index = 0; index < regions_.size(); ++index)
    if (goes_with(regions_[index], there)) return {index};
  return {};
}

bool FabricCore::goes_with(const LocalRegion& here, const RemoteRegion& there) noexcept {
  return here.taken && !here.observers_only && here.spec.generation == there.generation &&
         here.spec.name == there.name;
}

/// A peer's announcement from before the region was allocated here is matched in the next poll(),
/// so that its event comes from within one.
void FabricCore::match_soon(RegionId id) {
  for (const PeerState& state : states_)
    for (const Offer& offer : state.offers)
      if (offer.state == Offer::State::waiting && goes_with(regions_[id.index], *offer.there))
        must_match_ = true;
  if (must_match_) must_attend();
}

/// Matches waiting announcements; a handler of an event may release regions and expel peers.
void FabricCore::match_waiting() {
  if (!std::exchange(must_match_, false)) return;
  for (Rank peer = 0; peer < size(); ++peer) {
    std::vector<std::uint64_t> waiting;
    for (const Offer& offer : states_[peer].offers)
      if (offer.state == Offer::State::waiting) waiting.push_back(offer.there->number);
    for (const std::uint64_t number : waiting) match(peer, number);
  }
}

void FabricCore::match(Rank peer, std::uint64_t number) {
  if (states_[peer].expelled) return;
  Offer* const offer = find_offer(peer, number);
  if (offer == nullptr || offer->state != Offer::State::waiting) return;
  const RegionId id = local_region(*offer->there);
  if (id == RegionId{}) return;
  const RegionSpec& spec = regions_[id.index].spec;
  offer->here = id;
  if (spec.layout_hash != offer->there->layout_hash) {
    offer->state = Offer::State::refused;
    const std::string text = mismatch(spec, peer, *offer->there);
    return emit({.kind = Event::Kind::region_refused, .peer = peer, .region = id, .text = text});
  }
  offer->state = Offer::State::connected;
  backend_->connect(peer, id, *offer->there);
  fabric_.peers_[peer].connect(id);
  const std::string name = spec.name;
  emit({.kind = Event::Kind::region_connected, .peer = peer, .region = id, .text = name});
}

void FabricCore::disconnect(Rank peer, RegionId id) noexcept {
  if (!fabric_.connected(peer, id)) return;
  fabric_.peers_[peer].connected[id.index] = false;
  ++fabric_.disconnections_;
  backend_->disconnect(peer, id);
}

std::string FabricCore::mismatch(const RegionSpec& here, Rank peer,
                                 const RemoteRegion& there) const {
  return "region '" + here.name + "' has another layout at " + name_of(peer) + " than here at " +
         name_of(rank()) + ": " + layout_difference(there.layout_text, here.layout_text);
}

}  // namespace dunlin
