#include "multicast/delivered_before.hpp"

#include <algorithm>

namespace dunlin::multicast {

bool DeliveredBefore::has_next_of(Rank sender) {
  const auto ahead = ahead_of_.find(sender);
  if (ahead == ahead_of_.end()) return false;
  if (--ahead->second == 0) ahead_of_.erase(ahead);
  return true;
}

void DeliveredBefore::add(Rank sender, std::uint64_t messages) {
  if (messages > 0) ahead_of_[sender] += messages;
}

void DeliveredBefore::add(const DeliveredBefore& other, std::span<const Rank> senders) {
  for (const auto& [sender, ahead] : other.ahead_of_)
    if (std::ranges::find(senders, sender) != senders.end()) add(sender, ahead);
}

void DeliveredBefore::write(Writer& writer) const {
  writer.u32(static_cast<std::uint32_t>(ahead_of_.size()));
  for (const auto& [sender, ahead] : ahead_of_) {
    writer.u32(sender);
    writer.u64(ahead);
  }
}

void DeliveredBefore::read(Reader& reader) {
  ahead_of_.clear();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const Rank sender = reader.u32();
    add(sender, reader.u64());
  }
}

}  // namespace dunlin::multicast
