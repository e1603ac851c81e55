#include <algorithm>
#include <utility>

#include <dunlin/fabric.hpp>

#include "fabric/names.hpp"

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

std::string_view describe(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none:
      return "accepted";
    case Refusal::queue_full:
      return "the queue to the peer is full: poll, then post the rest";
    case Refusal::not_connected:
      return "the peer has not announced this region yet, or has withdrawn it";
    case Refusal::out_of_bounds:
      return "the operation reaches past the end of the peer's region";
    case Refusal::misaligned:
      return "an atomic must be aligned to 8 bytes, and source and target must agree modulo 8";
    case Refusal::too_large:
      return "a message may have at most kMaxMessageBytes, and its channel is below kMaxChannels";
    case Refusal::unknown_peer:
      return "there is no peer of this rank";
    case Refusal::unknown_region:
      return "this fabric has no such region, or it was released";
  }
  return "unknown refusal";
}

// --- regions -------------------------------------------------------------------------------------

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  if (fabric_ != nullptr) fabric_->release(id_);
  fabric_ = std::exchange(other.fabric_, nullptr);
  id_ = std::exchange(other.id_, {});
  memory_ = std::exchange(other.memory_, {});
  return *this;
}

Region::~Region() {
  if (fabric_ != nullptr) fabric_->release(id_);
}

Region Fabric::allocate(const RegionSpec& spec) { return make_region(spec, false); }

Region Fabric::publish(const RegionSpec& spec) { return make_region(spec, true); }

Region Fabric::make_region(RegionSpec spec, bool observers_only) {
  check_spec(spec);
  std::uint64_t& allocations = count_of(allocations_, spec.name);
  if (spec.epoch == 0) spec.epoch = allocations + 1;
  const RegionId id = free_slot(spec.name, spec.epoch);
  const std::span<std::byte> memory = do_allocate(id, spec, observers_only);
  slots_[id.index] = {
      .taken = true, .observers_only = observers_only, .name = spec.name, .epoch = spec.epoch};
  next_slot_ = id.index + 1;
  ++allocations;
  return {*this, id, memory};
}

void Fabric::announce(const Region& region) {
  if (region.fabric_ != this)
    throw Error("only a region that is allocated on this fabric can be announced to its peers");
  const Slot& slot = slots_[region.id_.index];
  if (slot.observers_only)
    throw Error("region '" + slot.name +
                "' was published for observers: it cannot be announced to peers, use allocate() "
                "for that");
  do_announce(region.id_);
}

/// Slots are taken in turn, so that the id of a released region stays unknown for long.
RegionId Fabric::free_slot(const std::string& name, std::uint64_t epoch) {
  slots_.resize(kMaxRegions);
  for (const Slot& slot : slots_)
    if (slot.taken && slot.epoch == epoch && slot.name == name)
      throw Error("region '" + name + "' of epoch " + std::to_string(epoch) +
                  " exists already in this process: release it first, or take another epoch");
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    const std::uint32_t index = (next_slot_ + i) % kMaxRegions;
    if (!slots_[index].taken) return {index};
  }
  throw Error("region '" + name + "' would be one too many: a fabric has at most " +
              std::to_string(kMaxRegions) + " regions at a time (kMaxRegions)");
}

void Fabric::release(RegionId id) noexcept {
  slots_[id.index] = {};
  do_release(id);
}

// --- operations ----------------------------------------------------------------------------------

Refusal Fabric::refuse(const Operation& operation) const noexcept {
  if (operation.peer >= size()) return Refusal::unknown_peer;
  if (operation.region.index >= slots_.size() || !slots_[operation.region.index].taken)
    return Refusal::unknown_region;
  if (failed(operation.peer)) {
    if (operation.completion != nullptr) {
      begin(*operation.completion);
      finish_failed(*operation.completion, operation.peer);
    }
    return Refusal::none;
  }
  return connected(operation.peer, operation.region) ? Refusal::out_of_bounds
                                                     : Refusal::not_connected;
}

// --- events --------------------------------------------------------------------------------------

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  if (fabric_ != nullptr) fabric_->unsubscribe(id_);
  fabric_ = std::exchange(other.fabric_, nullptr);
  id_ = std::exchange(other.id_, 0);
  return *this;
}

Subscription::~Subscription() {
  if (fabric_ != nullptr) fabric_->unsubscribe(id_);
}

Subscription Fabric::subscribe(EventHandler handler) {
  const std::uint64_t id = next_subscriber_++;
  subscribers_.push_back(std::make_unique<Subscriber>(Subscriber{id, std::move(handler)}));
  return {*this, id};
}

void Fabric::unsubscribe(std::uint64_t id) noexcept {
  for (auto& subscriber : subscribers_)
    if (subscriber->id == id) subscriber->id = 0;
  enter_handler();
  leave_handler();
}

/// A handler that is running may have unsubscribed itself: nothing is destroyed until none runs.
void Fabric::leave_handler() noexcept {
  if (--handler_depth_ > 0) return;
  std::erase_if(subscribers_, [](const auto& subscriber) { return subscriber->id == 0; });
}

void Fabric::emit(const Event& event) {
  enter_handler();
  const std::size_t present = subscribers_.size();  // later ones did not ask for this event
  for (std::size_t i = 0; i < present; ++i) {
    Subscriber& subscriber = *subscribers_[i];
    if (subscriber.id != 0) subscriber.handler(event);
  }
  leave_handler();
}

void Fabric::fail_peer(Rank peer, std::string how) {
  Peer& failing = peers_.at(peer);
  if (!failing.failed) failing.failure = std::move(how);
  failing.failed = true;
  if (std::exchange(failing.announced, true)) return;
  emit({.kind = Event::Kind::peer_failed, .peer = peer, .region = {}, .text = failing.failure});
}

void Fabric::expel(Rank peer, std::string why) {
  if (peer >= size())
    throw Error("there is no member of rank " + std::to_string(peer) + " to expel from group '" +
                group_ + "': it has ranks 0 to " + std::to_string(size() - 1));
  Peer& failing = peers_[peer];
  if (peer == rank_ || failing.failed) return;
  failing.failed = failing.expelled = true;
  failing.failure = std::move(why);
  untold_.push_back(peer);
  part_with_expelled(peer);
}

std::size_t Fabric::tell_expelled() {
  const std::vector<Rank> expelled = std::exchange(untold_, {});
  for (const Rank peer : expelled) fail_peer(peer, {});
  return expelled.size();
}

// --- messages ------------------------------------------------------------------------------------

void Fabric::receive(std::uint32_t channel, MessageHandler handler) {
  if (channel >= kMaxChannels)
    throw Error("channel " + std::to_string(channel) + " is not possible: channels are 0 to " +
                std::to_string(kMaxChannels - 1) + " (kMaxChannels)");
  handlers_.resize(kMaxChannels);
  handlers_[channel] =
      handler ? std::make_shared<const MessageHandler>(std::move(handler)) : nullptr;
  if (handlers_[channel]) channel_opened(channel);
}

bool Fabric::deliver(Rank from, std::uint32_t channel, std::span<const std::byte> message) {
  if (peers_[from].expelled) return true;
  if (channel >= handlers_.size() || !handlers_[channel]) return false;
  const auto handler = handlers_[channel];  // it may replace itself
  (*handler)(from, message);
  return true;
}

}  // namespace dunlin
