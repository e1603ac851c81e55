#include <algorithm>
#include <bit>

#include "fabric/shm/shm_fabric.hpp"

namespace dunlin::shm {

Refusal ShmFabric::send(Rank peer, std::uint32_t channel,
                        std::span<const std::byte> message) noexcept {
  if (peer >= size()) return Refusal::unknown_peer;
  if (message.size() > kMaxMessageBytes || channel >= kMaxChannels) return Refusal::too_large;
  Door& door = doors_[peer];
  if (door.base == nullptr) return Refusal::none;  // accepted, and lost with the peer
  if (!door.sender.push(door.base->ring(rank_), channel, message)) return Refusal::queue_full;
  mark_messages(peer);
  wake_if_asleep(door);
  return Refusal::none;
}

/// The mark comes before `pending`, and the owner clears `pending` before it looks at the marks: so
/// either it sees this mark, or `pending` is set again.
void ShmFabric::mark_messages(Rank to) noexcept {
  BaseSegment& base = *doors_[to].base;
  memory::fetch_or(&base.message_waiting[rank_ / 64], std::uint64_t{1} << rank_ % 64);
  memory::store(base.pending, 1);
}

/// Have the next poll() handle what does not come from a peer's store.
void ShmFabric::attend_soon() noexcept {
  memory::store(own_->control_waiting, 1);
  memory::store(own_->pending, 1);
}

void ShmFabric::handle_pending() {
  memory::exchange(&own_->pending, 0);
  if (memory::exchange(&own_->control_waiting, 0) != 0) read_control();
  for (Rank word = 0; word < kMarkWords; ++word) {
    if (memory::load(own_->message_waiting[word]) == 0) continue;
    std::uint64_t marks = memory::exchange(&own_->message_waiting[word], 0);
    for (; marks != 0; marks &= marks - 1)
      drain_messages(word * 64 + static_cast<Rank>(std::countr_zero(marks)));
  }
}

/// Only what is there at the beginning, so that a busy sender cannot hold us for ever: what comes
/// later has its own mark. Of a failed peer, only what it sent before.
void ShmFabric::drain_messages(Rank from) {
  if (from >= size()) return;
  MessageRing& ring = own_->ring(from);
  MessageReceiver& receiver = contacts_[from].receiver;
  const std::uint64_t end = std::min(memory::load(ring.head), contacts_[from].messages_until);
  Message message;
  while (receiver.position() != end) {
    const MessageReceiver::Found found = receiver.peek(ring, message);
    if (found == MessageReceiver::Found::nothing) return;
    if (found == MessageReceiver::Found::garbage) {
      contacts_[from].messages_until = receiver.position();
      return fail(from, "its messages are garbage");
    }
    // Without a handler it stays, and all behind it; channel_opened() comes back to it.
    if (!deliver(from, message.channel, std::span(message.content).first(message.bytes))) return;
    receiver.drop(ring);
    ++handled_;
  }
}

void ShmFabric::channel_opened(std::uint32_t) noexcept {
  for (Rank sender = 0; sender < size(); ++sender)
    memory::fetch_or(&own_->message_waiting[sender / 64], std::uint64_t{1} << sender % 64);
  memory::store(own_->pending, 1);
}

}  // namespace dunlin::shm
