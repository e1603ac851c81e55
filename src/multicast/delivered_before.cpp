#include "multicast/delivered_before.hpp"

#include <algorithm>

namespace dunlin::multicast {

bool DeliveredBefore::has(const OpenView& view, const Delivery& delivery) {
  if (!view.had.empty() && delivery.slot < view.had[delivery.sender].slots) return true;
  if (ahead_of_.empty()) [[likely]]
    return false;
  const auto ahead = ahead_of_.find(view.names[delivery.sender]);
  if (ahead == ahead_of_.end()) return false;
  if (--ahead->second == 0) ahead_of_.erase(ahead);
  return true;
}

void DeliveredBefore::add(const OpenView& view, std::span<const std::uint64_t> ahead) {
  for (std::size_t sender_rank = 0; sender_rank < ahead.size(); ++sender_rank)
    if (ahead[sender_rank] > 0) ahead_of_[view.name_of_sender(sender_rank)] += ahead[sender_rank];
}

void DeliveredBefore::add_state(const OpenView& view, std::span<const std::uint64_t> trim) {
  if (view.had.empty()) return;
  for (std::size_t sender_rank = 0; sender_rank < trim.size(); ++sender_rank) {
    const std::uint64_t from = std::max(view.view->passed(sender_rank).slots, trim[sender_rank]);
    const Known& had = view.had[view.subgroup.senders[sender_rank]];
    if (const std::uint64_t messages = had.messages_from(from))
      ahead_of_[view.name_of_sender(sender_rank)] += messages;
  }
}

void DeliveredBefore::write(Writer& writer) const {
  writer.u32(static_cast<std::uint32_t>(ahead_of_.size()));
  for (const auto& [name, ahead] : ahead_of_) {
    writer.text(name);
    writer.u64(ahead);
  }
}

void DeliveredBefore::read(Reader& reader) {
  ahead_of_.clear();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const std::string name = reader.text();
    if (const std::uint64_t ahead = reader.u64()) ahead_of_[name] = ahead;
  }
}

}  // namespace dunlin::multicast
