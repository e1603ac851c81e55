#include <algorithm>

#include "fabric/stream/stream_fabric.hpp"

/// What peers have posted, done here: by one thread, in order (S1), and nothing believed (S6).
namespace dunlin::stream {
namespace {

/// A peer that keeps to its window and its slots never has more of these waiting for it.
constexpr std::size_t kMaxAnswerBytesWaiting = 2 * kReadWindowBytes;
static_assert(kReadWindowBytes >= (2 * kQueueSlots + 8) * sizeof(EntryHead));

constexpr const char* kNoSuchRegion = "it named a region that it cannot know";
constexpr const char* kBeyondTheEnd = "it reached past the end of a region";
constexpr const char* kOffAWord = "it asked for an atomic operation off a word";
/// Who wants to hear of us oftener than four times in that does not.
constexpr std::uint32_t kLeastSilenceMs = 4;
constexpr const char* kAsksTooMuch = "it asks for more than it may have under way";

std::uint64_t operand(const Entry& entry, std::size_t which) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, entry.payload + which * sizeof value, sizeof value);
  return value;
}

}  // namespace

void StreamFabric::take_frame(Rank from, std::span<const std::byte> frame) {
  Contact& contact = contacts_[from];
  if (contact.failing) return;
  ++contact.frames;
  FrameReader reader(frame);
  Entry entry;
  while (reader.next(entry)) {
    const Fault fault = contact.greeted ? apply(from, contact, entry) : greet(from, contact, entry);
    if (fault != nullptr) return fail(from, fault);
    if (contact.failing) return;
  }
  if (reader.garbage()) return fail(from, "it sent a frame that is garbage");
  const bool owes = contact.placed != contact.placed_told ||
                    contact.message_bytes_handled != contact.message_bytes_told;
  if (owes || !contact.outbox.empty()) mark_unsent(from);
}

StreamFabric::Fault StreamFabric::greet(Rank from, Contact& contact, const Entry& entry) {
  if (entry.head.kind != EntryKind::hello) return "it did not say first who it is";
  Hello hello;
  std::memcpy(&hello, entry.payload, sizeof hello);
  if (hello.magic != Hello().magic) return "it speaks another protocol";
  if (hello.version != kProtocolVersion) return "it speaks another version of the protocol";
  if (hello.from != from || hello.to != rank_) return "it is somebody else, or means somebody else";
  if (!same_proof(hello.proof, their_proofs_[from])) return "it does not know the key of the group";
  contact.greeted = true;
  if (hello.silence_timeout_ms == 0) return nullptr;
  const std::uint64_t silence_timeout_ms = std::max(hello.silence_timeout_ms, kLeastSilenceMs);
  const std::uint64_t interval_ns = silence_timeout_ms * 1'000'000 / 4;
  beat_interval_ns_ = std::min(beat_interval_ns_, interval_ns);
  next_beat_ns_ = std::min(next_beat_ns_, recent_ns_ + beat_interval_ns_);
  return nullptr;
}

StreamFabric::Fault StreamFabric::apply(Rank from, Contact& contact, const Entry& entry) {
  ++handled_;
  switch (entry.head.kind) {
    case EntryKind::put:
    case EntryKind::write:
      return apply_bytes(contact, entry);
    case EntryKind::read:
      return apply_read(contact, entry);
    case EntryKind::fetch_add:
    case EntryKind::compare_swap:
      return apply_atomic(contact, entry);
    case EntryKind::bytes:
      return take_bytes(from, contact, entry);
    case EntryKind::former:
      return take_former(from, contact, entry.head);
    case EntryKind::placed:
      return take_placed(from, contact, entry.head);
    case EntryKind::message:
      return take_message(from, contact, entry);
    case EntryKind::heard:
      return take_heard(contact, entry.head);
    case EntryKind::announce:
      return take_announcement(contact, entry);
    case EntryKind::withdraw:
      return take_withdrawal(from, contact, entry.head);
    case EntryKind::beat:
      --handled_;
      return nullptr;
    case EntryKind::leave:
      contact.says_goodbye = true;
      return nullptr;
    case EntryKind::let_go:
      return take_let_go(from, entry.head);
    case EntryKind::dozing:
      return take_dozing(from, contact, entry.head);
    case EntryKind::noted:
      return take_noted(contact);
    case EntryKind::hello:
      break;
  }
  return "it said twice who it is";
}

/// Where an entry wants to go; nowhere if the region was withdrawn while it was on its way.
StreamFabric::Fault StreamFabric::reach(const Entry& entry, std::size_t bytes,
                                        std::byte*& at) const noexcept {
  const std::uint32_t number = entry.head.region;
  const std::uint32_t index = number % kMaxRegions;
  const std::uint32_t generation = number / kMaxRegions;
  at = nullptr;
  if (generation == 0 || generation > generations_[index]) return kNoSuchRegion;
  const Local* local = locals_[index].get();
  if (local == nullptr || local->number != number) return nullptr;
  const std::span<std::byte> memory = local->pages.memory();
  if (bytes > memory.size() || entry.head.value > memory.size() - bytes) return kBeyondTheEnd;
  at = memory.data() + entry.head.value;
  return nullptr;
}

/// Of so many bytes that were just said to answer the peer.
StreamFabric::Fault StreamFabric::count_answer(Contact& contact, std::size_t bytes) {
  contact.outbox.count_answer(bytes);
  return check_answers(contact);
}

StreamFabric::Fault StreamFabric::check_answers(const Contact& contact) noexcept {
  return contact.outbox.answer_bytes_waiting() > kMaxAnswerBytesWaiting ? kAsksTooMuch : nullptr;
}

StreamFabric::Fault StreamFabric::apply_bytes(Contact& contact, const Entry& entry) {
  std::byte* at = nullptr;
  if (const Fault fault = reach(entry, entry.head.bytes, at)) return fault;
  if (at != nullptr && entry.head.kind == EntryKind::write)
    memory::place(at, entry.payload, entry.head.bytes);
  else if (at != nullptr)
    memory::copy_unwatched(at, entry.payload, entry.head.bytes);
  if ((entry.head.flags & kAsks) != 0) count_placed(contact, at == nullptr);
  return check_answers(contact);
}

void StreamFabric::count_placed(Contact& contact, bool gone) {
  if (contact.placed_gone != gone) tell_placed(contact);
  contact.placed_gone = gone;
  ++contact.placed;
}

void StreamFabric::tell_placed(Contact& contact) {
  if (contact.placed == contact.placed_told) return;
  contact.placed_told = contact.placed;
  const EntryHead head{.kind = EntryKind::placed,
                       .flags = contact.placed_gone ? kGone : std::uint8_t{0},
                       .value = contact.placed};
  static_cast<void>(contact.outbox.insist(sizeof head));
  begin_entry(contact.outbox.take(sizeof head), head);
  contact.outbox.count_answer(sizeof head);
}

/// Answers in as many entries as there are frames to fill.
StreamFabric::Fault StreamFabric::apply_read(Contact& contact, const Entry& entry) {
  std::byte* at = nullptr;
  if (entry.head.bytes > kReadPieceBytes) return kAsksTooMuch;
  if (const Fault fault = reach(entry, entry.head.bytes, at)) return fault;
  EntryHead head{.kind = EntryKind::bytes, .ticket = entry.head.ticket, .value = entry.head.value};
  if (at == nullptr) {
    head.flags = kGone;
    head.value = entry.head.bytes;
    return answer(contact, head, nullptr);
  }
  std::size_t left = entry.head.bytes;
  do {
    constexpr std::size_t kWorthwhileBytes = 512;
    const std::size_t lead = lead_of(head.kind, head.value);
    const std::size_t room =
        contact.outbox.insist(sizeof head + whole_words(lead + std::min(left, kWorthwhileBytes)));
    const std::size_t most = room - sizeof head - lead;
    const std::size_t piece = left <= most ? left : most - (head.value + most) % kCacheLineBytes;
    head.bytes = static_cast<std::uint32_t>(piece);
    if (const Fault fault = answer(contact, head, at)) return fault;
    left -= piece;
    at += piece;
    head.value += piece;
  } while (left > 0);
  return nullptr;
}

StreamFabric::Fault StreamFabric::apply_atomic(Contact& contact, const Entry& entry) {
  std::byte* at = nullptr;
  if (entry.head.value % kWordBytes != 0) return kOffAWord;
  if (const Fault fault = reach(entry, kWordBytes, at)) return fault;
  EntryHead head{.kind = EntryKind::former, .ticket = entry.head.ticket};
  if (at == nullptr)
    head.flags = kGone;
  else if (entry.head.kind == EntryKind::fetch_add)
    head.value = memory::fetch_add(at, operand(entry, 0));
  else
    head.value = memory::compare_swap(at, operand(entry, 0), operand(entry, 1));
  if ((entry.head.flags & kAsks) == 0) return nullptr;
  return answer(contact, head, nullptr);
}

/// An answer that finds no buffer waits, and the peer has a limit on those.
StreamFabric::Fault StreamFabric::answer(Contact& contact, const EntryHead& head,
                                         const std::byte* from) {
  const std::size_t bytes = entry_bytes(head);
  static_cast<void>(contact.outbox.insist(bytes));
  std::byte* const payload = begin_entry(contact.outbox.take(bytes), head);
  if (from != nullptr) memory::fetch(payload, from, head.bytes);
  return count_answer(contact, bytes);
}

}  // namespace dunlin::stream
