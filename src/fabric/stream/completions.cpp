#include <algorithm>

#include "fabric/stream/stream_backend.hpp"

/// Takes the answers of peers. A peer answers in order, so an answer belongs to the oldest
/// operation that waits for an answer, and the ticket must say so.
namespace dunlin::stream {
namespace {

constexpr const char* kNotAsked = "it answered what was not asked";

}  // namespace

void StreamBackend::finish_one(Completion* completion, Rank peer, bool well) noexcept {
  if (completion == nullptr) return;
  well ? finish(*completion) : finish_failed(*completion, peer);
}

StreamBackend::Fault StreamBackend::take_bytes(Rank from, Contact& contact, const Entry& entry) {
  const EntryHead& head = entry.head;
  if (contact.reads.empty() || head.ticket != static_cast<std::uint32_t>(contact.reads.popped()))
    return kNotAsked;
  Reading& reading = contact.reads.front();
  const bool gone = (head.flags & kGone) != 0;
  const std::uint64_t bytes = gone ? head.value : head.bytes;
  const bool nothing =
      bytes == 0 && (reading.left_to_get != 0 || contact.next_read == contact.reads.popped());
  if (nothing || bytes > reading.left_to_get - reading.left_to_ask ||
      (!gone && head.value != reading.get_at))
    return kNotAsked;
  if (gone) reading.gone = true;
  if (!gone && reading.to != nullptr) {
    memory::place(reading.to, entry.payload, head.bytes);
    reading.to += head.bytes;
  }
  reading.get_at += bytes;
  reading.left_to_get -= bytes;
  contact.read_bytes_under_way -= bytes;
  if (reading.left_to_get == 0) {
    finish_one(reading.completion, from, !reading.gone);
    contact.reads.pop();
  }
  ask_for_reads(contact);
  return nullptr;
}

StreamBackend::Fault StreamBackend::take_former(Rank from, Contact& contact,
                                                const EntryHead& head) {
  if (contact.atomics.empty() ||
      head.ticket != static_cast<std::uint32_t>(contact.atomics.popped()))
    return kNotAsked;
  const Atomic atomic = contact.atomics.front();
  contact.atomics.pop();
  const bool gone = (head.flags & kGone) != 0;
  if (atomic.former != nullptr && !gone) std::memcpy(atomic.former, &head.value, sizeof head.value);
  finish_one(atomic.completion, from, !gone);
  return nullptr;
}

StreamBackend::Fault StreamBackend::take_placed(Rank from, Contact& contact,
                                                const EntryHead& head) {
  if (head.value <= contact.unplaced.popped() || head.value > contact.unplaced.pushed())
    return kNotAsked;
  const bool gone = (head.flags & kGone) != 0;
  while (contact.unplaced.popped() < head.value) {
    finish_one(contact.unplaced.front(), from, !gone);
    contact.unplaced.pop();
  }
  return nullptr;
}

void StreamBackend::fail_all(Contact& contact, Rank peer) noexcept {
  if (std::exchange(contact.writing.unfinished, false))
    finish_one(contact.writing.completion, peer, false);
  for (; !contact.unplaced.empty(); contact.unplaced.pop())
    finish_one(contact.unplaced.front(), peer, false);
  for (; !contact.reads.empty(); contact.reads.pop())
    finish_one(contact.reads.front().completion, peer, false);
  for (; !contact.atomics.empty(); contact.atomics.pop())
    finish_one(contact.atomics.front().completion, peer, false);
}

void StreamBackend::forget(const Completion& completion) noexcept {
  if (device_ != nullptr) device_->forget(completion);
  for (Contact& contact : contacts_) {
    if (contact.writing.unfinished && contact.writing.completion == &completion) cut_short(contact);
    for (std::uint64_t i = contact.unplaced.popped(); i < contact.unplaced.pushed(); ++i)
      if (contact.unplaced.at(i) == &completion) contact.unplaced.at(i) = nullptr;
    for (std::uint64_t i = contact.reads.popped(); i < contact.reads.pushed(); ++i) {
      Reading& reading = contact.reads.at(i);
      if (reading.completion != &completion) continue;
      reading.completion = nullptr;
      reading.to = nullptr;
    }
    for (std::uint64_t i = contact.atomics.popped(); i < contact.atomics.pushed(); ++i)
      if (contact.atomics.at(i).completion == &completion) contact.atomics.at(i) = {};
  }
}

}  // namespace dunlin::stream
