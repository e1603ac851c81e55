#include <algorithm>
#include <utility>

#include "fabric/sim/simulation.hpp"

/// Regions: memory, and what the nodes tell each other about it. An announcement to a peer travels
/// in order with the operations to that peer.
namespace dunlin::sim {

SimBackend::RemoteMemory SimBackend::reach(std::uint64_t number) const noexcept {
  bool known = false;
  if (core().find(number, known) == nullptr) return {};
  const std::span<std::byte> memory = memories_[number % kMaxRegions].bytes;
  return {memory.data(), memory.size()};
}

std::span<std::byte> SimBackend::map(RegionId id, const LocalRegion& region) {
  const RegionSpec& spec = region.spec;
  if (id.index >= memories_.size()) memories_.resize(id.index + 1);
  Memory& memory = memories_[id.index];
  // calloc, because the system's zeroed pages cost nothing until they are touched.
  memory.block.reset(static_cast<std::byte*>(std::calloc(spec.bytes + kCacheLineBytes, 1)));
  if (!memory.block)
    throw Error("region '" + spec.name + "' of simulated node " + std::to_string(node_) +
                ": no memory for " + std::to_string(spec.bytes) + " bytes; simulate fewer nodes");
  const auto address = reinterpret_cast<std::uintptr_t>(memory.block.get());
  const std::size_t skip = (kCacheLineBytes - address % kCacheLineBytes) % kCacheLineBytes;
  memory.bytes = {memory.block.get() + skip, spec.bytes};
  if (!region.observers_only) memory.remotes.assign(members_, {});
  return memory.bytes;
}

void SimBackend::open(RegionId, const LocalRegion&, RemoteRegion&) {}

void SimBackend::announce(Rank peer, RegionId id, const LocalRegion& region) {
  std::shared_ptr<RemoteRegion>& announced = memories_[id.index].announced;
  if (!announced)
    announced =
        std::make_shared<RemoteRegion>(RemoteRegion{.number = region.number,
                                                    .bytes = region.spec.bytes,
                                                    .generation = region.spec.generation,
                                                    .layout_hash = region.spec.layout_hash,
                                                    .name = region.spec.name,
                                                    .layout_text = region.spec.layout_text});
  send_control(peer, FlightKind::announcement, announced);
}

void SimBackend::withdraw(Rank peer, RegionId id, const LocalRegion&) noexcept {
  // No peer was told of a region that none was here for.
  if (memories_[id.index].announced)
    send_control(peer, FlightKind::withdrawal, memories_[id.index].announced);
}

void SimBackend::unmap(RegionId id, const LocalRegion&) noexcept {
  world_.network.forget_memory(endpoint_of(rank_), memories_[id.index].bytes);
  memories_[id.index] = {};
}

void SimBackend::connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept {
  memories_[id.index].remotes[peer] = {there.number, there.bytes};
}

void SimBackend::disconnect(Rank peer, RegionId id) noexcept {
  memories_[id.index].remotes[peer] = {};
}

void SimBackend::send_control(Rank peer, FlightKind kind,
                              const std::shared_ptr<RemoteRegion>& what) {
  if (link_to(peer).closed) return;
  Flight& flight = world_.network.new_flight(endpoint_of(rank_));
  flight.kind = kind;
  flight.to = endpoint_of(peer);
  flight.announcement = what;
  launch(flight);
}

void SimBackend::take_announcement(Rank from, Flight& flight) {
  const auto announced = flight.announcement;
  world_.network.retire(flight);
  if (core().failing(from)) return;
  if (const auto fault = core().on_announcement(from, announced); fault != nullptr)
    core().fail(from, fault);
}

void SimBackend::take_withdrawal(Rank from, Flight& flight) {
  const std::uint64_t number = flight.announcement->number;
  world_.network.retire(flight);
  if (core().failing(from)) return;
  if (const auto fault = core().on_withdrawal(from, number); fault != nullptr)
    core().fail(from, fault);
}

}  // namespace dunlin::sim
