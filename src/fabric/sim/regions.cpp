#include <algorithm>
#include <utility>

#include "fabric/sim/simulation.hpp"

/// Regions: memory, and what the nodes tell each other about it. An announcement travels in order
/// with the operations to the same peer.
namespace dunlin::sim {

const SimFabric::LocalRegion* SimFabric::find(RegionId id) const noexcept {
  if (id.index >= regions_.size() || regions_[id.index].serial == 0) return nullptr;
  return &regions_[id.index];
}

bool SimFabric::connected(Rank peer, RegionId region) const noexcept {
  const LocalRegion* found = find(region);
  return found != nullptr && peer < found->peers.size() && found->peers[peer] != nullptr;
}

SimFabric::Reach SimFabric::reach(std::uint32_t index, std::uint32_t serial) const noexcept {
  const LocalRegion& region = regions_[index];
  if (region.serial != serial) return {};
  return {region.memory.data(), region.memory.size()};
}

std::span<std::byte> SimFabric::do_allocate(RegionId id, const RegionSpec& spec,
                                            bool observers_only) {
  LocalRegion& region = regions_[id.index];
  // calloc: the system's zeroed pages cost nothing until touched.
  region.block.reset(static_cast<std::byte*>(std::calloc(spec.bytes + kCacheLineBytes, 1)));
  if (!region.block)
    throw Error("region '" + spec.name + "' of simulated node " + std::to_string(node_) +
                ": no memory for " + std::to_string(spec.bytes) + " bytes; simulate fewer nodes");
  const auto address = reinterpret_cast<std::uintptr_t>(region.block.get());
  const std::size_t skip = (kCacheLineBytes - address % kCacheLineBytes) % kCacheLineBytes;
  region.memory = {region.block.get() + skip, spec.bytes};
  region.spec = spec;
  region.serial = ++last_serial_;
  region.announced = false;
  region.observers_only = observers_only;
  region.peers.assign(size(), nullptr);
  if (observers_only) return region.memory;
  for (Rank peer = 0; peer < size(); ++peer)
    for (const auto& heard : heard_[peer])
      if (heard->spec.epoch == spec.epoch && heard->spec.name == spec.name)
        matches_.emplace_back(peer, heard);
  if (!matches_.empty()) poll_soon();
  return region.memory;
}

void SimFabric::do_announce(RegionId id) {
  LocalRegion& region = regions_[id.index];
  if (std::exchange(region.announced, true)) return;
  const auto announcement = std::make_shared<const Announcement>(
      Announcement{.spec = region.spec, .index = id.index, .serial = region.serial});
  region.peers[rank_] = announcement;
  tell_peers(FlightKind::announcement, announcement);
}

void SimFabric::do_release(RegionId id) noexcept {
  LocalRegion& region = regions_[id.index];
  world_.network.forget_memory(seat_of(rank_), region.memory);
  if (region.announced) {
    tell_peers(FlightKind::withdrawal,
               std::make_shared<const Announcement>(
                   Announcement{.spec = region.spec, .index = id.index, .serial = region.serial}));
  }
  region = {};
}

void SimFabric::tell_peers(FlightKind kind, const std::shared_ptr<const Announcement>& what) {
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || link_to(peer).closed) continue;
    Flight& flight = world_.network.new_flight();
    flight.kind = kind;
    flight.from = seat_of(rank_);
    flight.to = seat_of(peer);
    flight.announcement = what;
    launch(flight);
  }
}

// --- what peers tell -----------------------------------------------------------------------------

std::size_t SimFabric::hear_announcement(Flight& flight) {
  const Rank peer = rank_of(flight.from);
  const auto announcement = flight.announcement;
  world_.network.retire(flight);
  heard_[peer].push_back(announcement);
  match(peer, announcement);
  return 1;
}

/// What the peer had announced: it has failed.
void SimFabric::forget(Rank peer) {
  heard_[peer].clear();
  for (LocalRegion& region : regions_)
    if (region.serial != 0) region.peers[peer] = nullptr;
}

std::size_t SimFabric::handle_matches() {
  const auto matches = std::exchange(matches_, {});
  for (const auto& [peer, announcement] : matches) match(peer, announcement);
  return matches.size();
}

void SimFabric::match(Rank peer, const std::shared_ptr<const Announcement>& announcement) {
  const auto& heard = heard_[peer];
  if (std::find(heard.begin(), heard.end(), announcement) == heard.end()) return;  // withdrawn
  for (std::uint32_t index = 0; index < regions_.size(); ++index) {
    LocalRegion& region = regions_[index];
    const bool same = region.serial != 0 && !region.observers_only &&
                      region.spec.epoch == announcement->spec.epoch &&
                      region.spec.name == announcement->spec.name;
    if (!same || region.peers[peer] == announcement) continue;
    if (region.spec.layout_hash != announcement->spec.layout_hash) {
      const std::string text = refusal_text(region, peer, *announcement);
      return emit({Event::Kind::region_refused, peer, {index}, text});
    }
    region.peers[peer] = announcement;
    return emit({Event::Kind::region_connected, peer, {index}, region.spec.name});
  }
}

std::size_t SimFabric::hear_withdrawal(Flight& flight) {
  const Rank peer = rank_of(flight.from);
  const Announcement gone = *flight.announcement;
  world_.network.retire(flight);
  std::erase_if(heard_[peer], [&](const auto& heard) {
    return heard->index == gone.index && heard->serial == gone.serial;
  });
  for (std::uint32_t index = 0; index < regions_.size(); ++index) {
    LocalRegion& region = regions_[index];
    if (region.serial == 0 || !region.peers[peer]) continue;
    const Announcement& known = *region.peers[peer];
    if (known.index != gone.index || known.serial != gone.serial) continue;
    region.peers[peer] = nullptr;
    emit({Event::Kind::region_withdrawn, peer, {index}, gone.spec.name});
    return 1;
  }
  return 1;
}

std::string SimFabric::refusal_text(const LocalRegion& here, Rank peer,
                                    const Announcement& there) const {
  const auto side = [](const std::string& who, const RegionSpec& spec) {
    return who + " has layout " + std::to_string(spec.layout_hash) + " (" + spec.layout_text + ")";
  };
  return "region '" + here.spec.name + "' of epoch " + std::to_string(here.spec.epoch) + ": " +
         side(member_name(rank_), here.spec) + ", but " + side(member_name(peer), there.spec);
}

}  // namespace dunlin::sim
