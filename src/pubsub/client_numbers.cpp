#include "pubsub/client_numbers.hpp"

#include <span>

#include "assert.hpp"

namespace dunlin::pubsub {

bool ClientNumbers::note(const ClientStamp& stamp) {
  const auto found = places_.find(stamp.client);
  if (found != places_.end()) {
    ClientStamp& last = *found->second;
    if (stamp.number <= last.number) return false;
    last.number = stamp.number;
    by_age_.splice(by_age_.end(), by_age_, found->second);
    return true;
  }
  DUNLIN_ASSERT(places_.size() == by_age_.size(), "RLY-1: one number of each client suffices");
  if (by_age_.size() >= kMaxTopicClients) {
    places_.erase(by_age_.front().client);
    by_age_.pop_front();
  }
  places_.emplace(stamp.client, by_age_.insert(by_age_.end(), stamp));
  return true;
}

std::uint64_t ClientNumbers::delivered_of(const ClientId& client) const noexcept {
  const auto found = places_.find(client);
  return found == places_.end() ? 0 : found->second->number;
}

void ClientNumbers::save(Writer& to) const {
  to.u32(static_cast<std::uint32_t>(by_age_.size()));
  for (const ClientStamp& stamp : by_age_) to.bytes(std::as_bytes(std::span(&stamp, 1)));
}

bool ClientNumbers::load(Reader& from) {
  const std::uint32_t count = from.u32();
  if (count > kMaxTopicClients) return false;
  for (std::uint32_t i = 0; i < count && from.good(); ++i) {
    ClientStamp stamp;
    stamp.client = from.array<sizeof(ClientId)>();
    stamp.number = from.u64();
    static_cast<void>(note(stamp));
  }
  return true;
}

}  // namespace dunlin::pubsub
