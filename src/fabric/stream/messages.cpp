#include "fabric/stream/stream_backend.hpp"

namespace dunlin::stream {
namespace {

/// The portions in which the sender learns of handled bytes: often enough that it never has to
/// stop.
constexpr std::uint64_t kHeardPortionBytes = Inbox::kWindowBytes / 4;

}  // namespace

Refusal StreamBackend::send(Rank peer, std::uint32_t channel,
                            std::span<const std::byte> message) noexcept {
  Contact& contact = contacts_[peer];
  if (peer == rank_) {
    if (!contact.inbox.push(channel, message)) return Refusal::queue_full;
    sent_to_self_ = true;
    if (core().prepared_to_sleep()) core().sleeper().ring();  // no descriptor tells of this message
    return Refusal::none;
  }
  const std::size_t record = Inbox::record_bytes(message.size());
  if (contact.message_bytes_sent - contact.message_bytes_received + record > Inbox::kWindowBytes)
    return Refusal::queue_full;
  const EntryHead head{.kind = EntryKind::message,
                       .channel = static_cast<std::uint16_t>(channel),
                       .bytes = static_cast<std::uint32_t>(message.size())};
  const bool is_behind = contact.writing.unfinished && still_writing(contact);
  if (is_behind || contact.outbox.offer(entry_bytes(head)) == 0) {
    mark_unsent(peer);
    if (!core().polling()) transport_->relieve(*this);
    return Refusal::queue_full;
  }
  std::byte* const payload = begin_entry(contact.outbox.take(entry_bytes(head)), head);
  if (!message.empty()) std::memcpy(payload, message.data(), message.size());
  contact.message_bytes_sent += record;
  mark_unsent(peer);
  send_if_idle(peer);
  return Refusal::none;
}

/// Takes a message. Without a handler it waits, and all messages behind it; the core drains them
/// when there is a handler. The rest of the frames goes on: a message is there once its frame is.
StreamBackend::Fault StreamBackend::take_message(Rank from, Contact& contact, const Entry& entry) {
  if (contact.inbox.empty() && core().deliver(from, entry.head.channel, entry.content())) {
    contact.message_bytes_handled += Inbox::record_bytes(entry.head.bytes);
    return nullptr;
  }
  const bool fits = contact.inbox.push(entry.head.channel, entry.content());
  return fits ? nullptr : "it sent more messages than it may before they are handled";
}

StreamBackend::Fault StreamBackend::take_received_report(Contact& contact, const EntryHead& head) {
  if (head.value <= contact.message_bytes_received || head.value > contact.message_bytes_sent)
    return "it heard messages that were not sent";
  contact.message_bytes_received = head.value;
  return nullptr;
}

void StreamBackend::report_received(Contact& contact) {
  if (contact.message_bytes_handled - contact.message_bytes_reported < kHeardPortionBytes) return;
  contact.message_bytes_reported = contact.message_bytes_handled;
  const EntryHead head{.kind = EntryKind::heard, .value = contact.message_bytes_reported};
  static_cast<void>(contact.outbox.insist(sizeof head));
  begin_entry(contact.outbox.take(sizeof head), head);
}

/// Drains the messages that are there at the beginning: what a handler sends to its own node waits
/// for the next poll().
void StreamBackend::drain(Rank from) {
  Contact& contact = contacts_[from];
  const std::uint64_t end = contact.inbox.pushed();
  Inbox::Message message;
  while (contact.inbox.popped() != end) {
    contact.inbox.peek(message);
    if (!core().deliver(from, message.channel, message.view())) break;
    contact.inbox.pop();
    contact.message_bytes_handled += Inbox::record_bytes(message.bytes);
    core().count_handled();
  }
  if (from != rank_ && end != 0) mark_unsent(from);
}

}  // namespace dunlin::stream
