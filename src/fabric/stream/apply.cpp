#include <algorithm>

#include "fabric/stream/stream_backend.hpp"

/// Applies the operations of peers: by one thread, in order (STR-S1), after checking all of them
/// (STR-S6).
namespace dunlin::stream {
namespace {

/// A peer that keeps to its window and its slots never has more answer bytes than this waiting for
/// it.
constexpr std::size_t kMaxAnswerBytesWaiting = 2 * kReadWindowBytes;
static_assert(kReadWindowBytes >= (2 * kQueueSlots + 8) * sizeof(EntryHead));

constexpr const char* kNoSuchRegion = "it named a region that it cannot know";
constexpr const char* kBeyondTheEnd = "it reached past the end of a region";
constexpr const char* kOffAWord = "it asked for an atomic operation off a word";
constexpr const char* kAsksTooMuch = "it asks for more than it may have under way";

std::uint64_t operand(const Entry& entry, std::size_t which) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, entry.payload + which * sizeof value, sizeof value);
  return value;
}

}  // namespace

void StreamBackend::take_frame(Rank from, std::span<const std::byte> frame) {
  Contact& contact = contacts_[from];
  if (core().failing(from)) return;
  ++contact.frames;
  FrameReader reader(frame);
  Entry entry;
  while (reader.next(entry)) {
    const Fault fault = contact.greeted ? apply(from, contact, entry) : greet(from, contact, entry);
    if (fault != nullptr) return core().fail(from, fault);
    if (core().failing(from)) return;
  }
  if (reader.garbage()) return core().fail(from, "it sent a frame that is garbage");
  const bool owes = contact.placed != contact.placed_reported ||
                    contact.message_bytes_handled != contact.message_bytes_reported;
  if (owes || !contact.outbox.empty()) mark_unsent(from);
}

/// Finds the places for bytes behind the frame, which are placed before any entry of the frame is
/// applied. That is before its puts could be seen, and no reader looks at their bytes yet (FAB-F1).
bool StreamBackend::find_places(Rank from, std::span<const std::byte> frame,
                                std::vector<Place>& places) {
  Contact& contact = contacts_[from];
  if (core().failing(from)) return false;
  contact.bytes_behind = 0;
  Fault fault = contact.greeted ? nullptr : "it did not say first who it is";
  FrameReader reader(frame);
  Entry entry;
  while (fault == nullptr && reader.next(entry))
    if ((entry.head.flags & kBehind) != 0) fault = find_place(contact, entry, places);
  if (fault == nullptr && reader.garbage()) fault = "it sent a frame that is garbage";
  if (fault != nullptr) core().fail(from, fault);
  return fault == nullptr;
}

StreamBackend::Fault StreamBackend::find_place(Contact& contact, const Entry& entry,
                                               std::vector<Place>& places) const {
  Place place{.bytes = entry.head.bytes};
  if (const Fault fault = reach(entry, place.bytes, place.at)) return fault;
  contact.bytes_behind += place.bytes;
  places.push_back(place);
  return nullptr;
}

StreamBackend::Fault StreamBackend::greet(Rank from, Contact& contact, const Entry& entry) {
  if (entry.head.kind != EntryKind::hello) return "it did not say first who it is";
  Hello hello;
  std::memcpy(&hello, entry.payload, sizeof hello);
  if (hello.magic != Hello().magic) return "it speaks another protocol";
  if (hello.version != kProtocolVersion) return "it speaks another version of the protocol";
  if (hello.from != from || hello.to != rank_) return "it is somebody else, or means somebody else";
  if (!same_proof(hello.proof, their_proofs_[from])) return "it does not know the key of the group";
  contact.greeted = true;
  core().on_silence_timeout(hello.silence_timeout_ms);
  if (!core().linked(from)) core().on_linked(from);
  return nullptr;
}

StreamBackend::Fault StreamBackend::apply(Rank from, Contact& contact, const Entry& entry) {
  switch (entry.head.kind) {
    case EntryKind::beat:
      return nullptr;
    case EntryKind::heard:
      return take_received_report(contact, entry.head);
    default:
      core().count_handled();
  }
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
    case EntryKind::announce:
      return take_announcement(from, entry);
    case EntryKind::withdraw:
      return core().on_withdrawal(from, entry.head.region);
    case EntryKind::leave:
      core().on_leave(from);
      return nullptr;
    case EntryKind::let_go:
      return take_let_go(from, entry.head);
    case EntryKind::dozing:
      return take_dozing(from, contact, entry.head);
    case EntryKind::noted:
      return take_noted(contact);
    case EntryKind::hello:
    case EntryKind::beat:
    case EntryKind::heard:
      break;
  }
  return "it said twice who it is";
}

/// Finds the memory of an entry; none if the region was withdrawn while the entry was on its way.
StreamBackend::Fault StreamBackend::reach(const Entry& entry, std::size_t bytes,
                                          std::byte*& at) const noexcept {
  at = nullptr;
  bool known = false;
  const LocalRegion* const region = core().find(entry.head.region, known);
  if (!known) return kNoSuchRegion;
  if (region == nullptr) return nullptr;
  const std::span<std::byte> memory = memories_[entry.head.region % kMaxRegions]->pages.memory();
  if (bytes > memory.size() || entry.head.value > memory.size() - bytes) return kBeyondTheEnd;
  at = memory.data() + entry.head.value;
  return nullptr;
}

/// Counts bytes that were just composed as an answer to the peer.
StreamBackend::Fault StreamBackend::count_answer(Contact& contact, std::size_t bytes) {
  contact.outbox.count_answer(bytes);
  return check_answers(contact);
}

StreamBackend::Fault StreamBackend::check_answers(const Contact& contact) noexcept {
  return contact.outbox.answer_bytes_waiting() > kMaxAnswerBytesWaiting ? kAsksTooMuch : nullptr;
}

StreamBackend::Fault StreamBackend::apply_bytes(Contact& contact, const Entry& entry) {
  std::byte* at = nullptr;
  if (const Fault fault = reach(entry, entry.head.bytes, at)) return fault;
  if ((entry.head.flags & kBehind) != 0) {
    if (entry.head.bytes > contact.bytes_behind) return "it did not send what is behind a frame";
    contact.bytes_behind -= entry.head.bytes;  // they are in place
  } else if (at != nullptr && entry.head.kind == EntryKind::write)
    memory::place(at, entry.payload, entry.head.bytes);
  else if (at != nullptr)
    memory::copy_unwatched(at, entry.payload, entry.head.bytes);
  if ((entry.head.flags & kAsks) != 0) count_placed(contact, at == nullptr);
  return check_answers(contact);
}

void StreamBackend::count_placed(Contact& contact, bool gone) {
  if (contact.placed_gone != gone) report_placed(contact);
  contact.placed_gone = gone;
  ++contact.placed;
}

void StreamBackend::report_placed(Contact& contact) {
  if (contact.placed == contact.placed_reported) return;
  contact.placed_reported = contact.placed;
  const EntryHead head{.kind = EntryKind::placed,
                       .flags = contact.placed_gone ? kGone : std::uint8_t{0},
                       .value = contact.placed};
  static_cast<void>(contact.outbox.insist(sizeof head));
  begin_entry(contact.outbox.take(sizeof head), head);
  contact.outbox.count_answer(sizeof head);
}

/// Answers a read in as many entries as there are frames to fill.
StreamBackend::Fault StreamBackend::apply_read(Contact& contact, const Entry& entry) {
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

StreamBackend::Fault StreamBackend::apply_atomic(Contact& contact, const Entry& entry) {
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

/// Composes an answer. If it finds no buffer it waits, and the peer has a limit on waiting answers.
StreamBackend::Fault StreamBackend::answer(Contact& contact, const EntryHead& head,
                                           const std::byte* from) {
  const std::size_t bytes = entry_bytes(head);
  static_cast<void>(contact.outbox.insist(bytes));
  std::byte* const payload = begin_entry(contact.outbox.take(bytes), head);
  if (from != nullptr) memory::fetch(payload, from, head.bytes);
  return count_answer(contact, bytes);
}

}  // namespace dunlin::stream
