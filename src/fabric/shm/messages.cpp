#include <algorithm>
#include <bit>

#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {
namespace {

/// Ranks that are equal modulo this number share a mark.
constexpr Rank kMarks = kMarkWords * 64;

}  // namespace

Refusal ShmBackend::send(Rank peer, std::uint32_t channel,
                         std::span<const std::byte> message) noexcept {
  Attention& there = attention_[peer];
  if (there.base == nullptr) return Refusal::none;  // the peer died while the group was forming
  if (!there.sender.push(*there.ring, channel, message)) return Refusal::queue_full;
  mark_messages(peer);
  wake_if_asleep(there);
  return Refusal::none;
}

/// Marks that messages wait. The mark comes before `pending`, and the owner clears `pending` before
/// it looks at the marks: so either it sees this mark, or `pending` is set again.
void ShmBackend::mark_messages(Rank to) noexcept {
  BaseMapping& base = *attention_[to].base;
  const Rank mark = self_.rank % kMarks;
  memory::fetch_or(&base.message_waiting[mark / 64], std::uint64_t{1} << mark % 64);
  memory::store(base.pending, 1);
}

/// Makes the next poll() handle what does not come from a peer's store.
void ShmBackend::attend_soon() noexcept { memory::store(*pending_, 1); }

void ShmBackend::handle_pending() {
  memory::exchange(pending_, 0);
  if (memory::exchange(&own_->control_waiting, 0) != 0) read_control();
  for (Rank word = 0; word < kMarkWords; ++word) {
    if (memory::load(own_->message_waiting[word]) == 0) continue;
    std::uint64_t marks = memory::exchange(&own_->message_waiting[word], 0);
    for (; marks != 0; marks &= marks - 1) {
      const Rank mark = word * 64 + static_cast<Rank>(std::countr_zero(marks));
      for (Rank rank = mark; rank < members_; rank += kMarks) drain(rank);
    }
  }
}

/// Gives back the ring of a newcomer which has gone, once all in it has been read.
void ShmBackend::give_back_ring(Contact& contact) noexcept {
  if (!contact.link.inbox || contact.receiver.position() != contact.messages_until) return;
  contact.ring = nullptr;
  contact.link.inbox.reset();
}

/// Takes the messages that are there at the beginning, so that a busy sender cannot hold us for
/// ever: later messages have their own mark. Of a failed peer's messages, only those sent before
/// its failure count.
void ShmBackend::drain(Rank from) {
  if (from >= members_ || contacts_[from].ring == nullptr) return;
  MessageRing& ring = *contacts_[from].ring;
  MessageReceiver& receiver = contacts_[from].receiver;
  const std::uint64_t end = std::min(memory::load(ring.head), contacts_[from].messages_until);
  if (core().failing(from)) contacts_[from].messages_until = end;  // its failure comes next
  Message message;
  while (receiver.position() != end) {
    const MessageReceiver::Found found = receiver.peek(ring, message);
    if (found == MessageReceiver::Found::nothing) return;
    if (found == MessageReceiver::Found::garbage) {
      contacts_[from].messages_until = receiver.position();
      if (from == self_.rank) return;  // a peer has damaged the ring of our own messages
      return core().fail(from, "its messages are garbage");
    }
    // Without a handler the message stays, and all behind it; the core drains again when there is a
    // handler.
    const auto content = std::span(message.content).first(message.bytes);
    if (!core().deliver(from, message.channel, content)) return;
    receiver.drop(ring);
    core().count_handled();
  }
  if (core().failing(from)) give_back_ring(contacts_[from]);
}

}  // namespace dunlin::shm
