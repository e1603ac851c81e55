#include <algorithm>

#include "fabric/alignment.hpp"
#include "fabric/stream/stream_backend.hpp"

namespace dunlin::stream {
namespace {

/// A piece of a long operation is worth at least so much room.
constexpr std::size_t kSmallestPieceBytes = 512;
/// Fewer bytes than this are copied, because that is faster than gathering them.
constexpr std::size_t kLeastBehindBytes = 4096;

bool misaligned(const Operation& operation) noexcept {
  if (is_atomic(operation.kind)) return !lies_on_words(operation);
  return operation.kind != OperationKind::put && !lies_alike(operation);
}

/// The least room for the next entry of so many bytes, or of a piece of them.
std::size_t least_room(const EntryHead& head, std::size_t bytes) noexcept {
  return sizeof head +
         whole_words(lead_of(head.kind, head.value) + std::min(bytes, kSmallestPieceBytes));
}

/// Copies an entry into the frame. Requires that there is room for it.
void copy_entry(Outbox& outbox, const EntryHead& head, const void* from) noexcept {
  std::byte* const payload = begin_entry(outbox.take(entry_bytes(head)), head);
  head.kind == EntryKind::put ? memory::copy_unwatched(payload, from, head.bytes)
                              : memory::place(payload, from, head.bytes);
}

void give_former(void* local, std::uint64_t value) noexcept {
  if (local != nullptr) std::memcpy(local, &value, sizeof value);
}

}  // namespace

Posted StreamBackend::post(std::span<const Operation> batch) noexcept {
  Posted posted;
  for (const Operation& operation : batch) {
    posted.refusal = perform(operation);
    if (posted.refusal != Refusal::none) break;
    ++posted.accepted;
  }
  Rank told = UINT32_MAX;
  for (const Operation& operation : batch.first(posted.accepted)) {
    if (operation.peer == told || (operation.more && device_ == nullptr)) continue;
    told = operation.peer;
    send_if_idle(told);
    if (device_ != nullptr) ring_device(told);
  }
  if (posted.refusal == Refusal::queue_full && !core().polling()) transport_->relieve(*this);
  return posted;
}

Refusal StreamBackend::perform(const Operation& operation) noexcept {
  if (operation.peer >= members_ || operation.region.index >= kMaxRegions) [[unlikely]]
    return core().refuse(operation);
  const Remote& target = remote(operation.peer, operation.region);
  const std::size_t bytes = extent_of(operation);
  if (target.number == 0 || bytes > target.bytes || operation.offset > target.bytes - bytes)
      [[unlikely]]
    return core().refuse(operation);
  if (misaligned(operation)) [[unlikely]]
    return Refusal::misaligned;
  Contact& contact = contacts_[operation.peer];
  if (contact.writing.unfinished && still_writing(contact)) [[unlikely]]
    return Refusal::queue_full;
  if (operation.peer == rank_ && !(is_atomic(operation.kind) && atomics_by_device_alone()))
    return perform_here(operation);
  if (device_ != nullptr) {
    const Way way = way_of(contact, operation);
    if (way == Way::later) return Refusal::queue_full;
    if (way == Way::device) return start_by_device(contact, target, operation);
  }
  Refusal refusal = Refusal::none;
  switch (operation.kind) {
    case OperationKind::put:
    case OperationKind::write:
      refusal = send_bytes(contact, target, operation);
      break;
    case OperationKind::read:
      refusal = ask_read(contact, target, operation);
      break;
    case OperationKind::fetch_add:
    case OperationKind::compare_swap:
      refusal = ask_atomic(contact, target, operation);
      break;
  }
  mark_unsent(operation.peer);
  return refusal;
}

/// Performs an operation on our own memory: it is done when post() returns.
Refusal StreamBackend::perform_here(const Operation& operation) noexcept {
  std::byte* const at = memories_[operation.region.index]->pages.memory().data() + operation.offset;
  switch (operation.kind) {
    case OperationKind::put:
      memory::copy_unwatched(at, operation.local, operation.bytes);
      break;
    case OperationKind::write:
      memory::place(at, operation.local, operation.bytes);
      break;
    case OperationKind::read:
      memory::fetch(operation.local, at, operation.bytes);
      break;
    case OperationKind::fetch_add:
      give_former(operation.local, memory::fetch_add(at, operation.operand));
      break;
    case OperationKind::compare_swap:
      give_former(operation.local, memory::compare_swap(at, operation.operand, operation.desired));
      break;
  }
  return Refusal::none;
}

/// STR-S3: copies the bytes at once, in as many entries as there are frames to fill; or, if they
/// are too many, as far as there are frames, and the rest as frames come back.
Refusal StreamBackend::send_bytes(Contact& contact, const Remote& target,
                                  const Operation& operation) {
  const bool told = operation.completion != nullptr && operation.when == Notify::remotely;
  const bool asks = told || awaits_answers_;
  if (asks && contact.unplaced.full()) return Refusal::queue_full;
  const bool is_put = operation.kind == OperationKind::put;
  EntryHead head{.kind = is_put ? EntryKind::put : EntryKind::write,
                 .flags = asks ? kAsks : std::uint8_t{0},
                 .region = target.number,
                 .value = operation.offset};
  if (contact.outbox.offer(least_room(head, operation.bytes)) == 0) return Refusal::queue_full;
  if (told) begin(*operation.completion);
  if (operation.bytes <= kSmallestPieceBytes) {  // then it fits
    head.bytes = static_cast<std::uint32_t>(operation.bytes);
    copy_entry(contact.outbox, head, operation.local);
    if (asks) contact.unplaced.push(told ? operation.completion : nullptr);
    return Refusal::none;
  }
  Writing writing = {.completion = operation.completion,
                     .when = operation.when,
                     .at_once = operation.bytes <= kMaxCopiedBytes,
                     .head = head,
                     .from = static_cast<const std::byte*>(operation.local),
                     .left = operation.bytes};
  if (copy_into_frames(contact.outbox, writing)) {
    if (asks) contact.unplaced.push(told ? operation.completion : nullptr);
    return Refusal::none;
  }
  writing.unfinished = true;
  contact.writing = writing;
  if (operation.completion != nullptr && !told) begin(*operation.completion);
  return Refusal::none;
}

/// Copies bytes into frames; false if there was no frame for all of them. An operation that must
/// not wait has checked that there is room for its beginning, and goes on. Only the last entry asks
/// to be counted.
bool StreamBackend::copy_into_frames(Outbox& outbox, Writing& writing) const {
  for (;;) {
    std::size_t piece = put_behind(outbox, writing);
    if (piece == 0) piece = copy_piece(outbox, writing);
    if (piece == 0 && writing.left > 0) return false;
    if (piece == writing.left) return true;
    writing.left -= piece;
    writing.from += piece;
    writing.head.value += piece;
  }
}

/// Copies a piece into the frame; returns how many bytes found room. Requires that some do.
std::size_t StreamBackend::copy_piece(Outbox& outbox, const Writing& writing) {
  EntryHead head = writing.head;
  const std::size_t least = least_room(head, writing.left);
  const std::size_t room = writing.at_once ? outbox.insist(least) : outbox.offer(least);
  if (room == 0) return 0;
  const std::size_t most = room - sizeof head - lead_of(head.kind, head.value);
  const bool last = writing.left <= most;
  const std::size_t piece = last ? writing.left : most - (head.value + most) % kCacheLineBytes;
  head.bytes = static_cast<std::uint32_t>(piece);
  if (!last) head.flags = 0;
  copy_entry(outbox, head, writing.from);
  return piece;
}

/// Attaches bytes behind the frame, where the kernel reads them in place; returns how many found
/// room. Only bytes of puts: other operations' words must stay whole.
std::size_t StreamBackend::put_behind(Outbox& outbox, const Writing& writing) const {
  if (!carries_behind_ || writing.head.kind != EntryKind::put || writing.left < kLeastBehindBytes)
    return 0;
  std::size_t piece = 0;
  if (outbox.offer(sizeof(EntryHead)) != 0) piece = outbox.attach(writing.from, writing.left);
  if (piece == 0) {
    outbox.flush();
    if (outbox.offer(sizeof(EntryHead)) != 0) piece = outbox.attach(writing.from, writing.left);
  }
  if (piece == 0) return 0;
  EntryHead head = writing.head;
  head.bytes = static_cast<std::uint32_t>(piece);
  if (piece != writing.left) head.flags = 0;
  head.flags |= kBehind;
  begin_entry(outbox.take(sizeof head), head);
  return piece;
}

/// Copies what there is room for now. The slot for the answer was free at the beginning, and still
/// is, as nothing was taken since.
bool StreamBackend::still_writing(Contact& contact) {
  Writing& writing = contact.writing;
  const bool all = copy_into_frames(contact.outbox, writing);
  if (contact.outbox.unsettled_bytes() > 0) contact.outbox.flush();
  if (!all) return true;
  writing.unfinished = false;
  const bool told = writing.completion != nullptr && writing.when == Notify::remotely;
  if ((writing.head.flags & kAsks) != 0) contact.unplaced.push(told ? writing.completion : nullptr);
  if (writing.completion == nullptr || told) return false;
  core().count_handled();
  finish(*writing.completion);
  return false;
}

/// Cuts a write short: its source must not be read any more. What has left may still be on its way,
/// so an entry of no bytes asks for it (STR-B1).
void StreamBackend::cut_short(Contact& contact) {
  contact.writing.completion = nullptr;
  contact.writing.at_once = true;
  contact.writing.left = 0;
  static_cast<void>(still_writing(contact));
}

bool StreamBackend::is_source(const Memory& of) const noexcept {
  const std::span<const std::byte> memory = of.pages.memory();
  return std::any_of(contacts_.begin(), contacts_.end(), [&](const Contact& contact) {
    const Writing& writing = contact.writing;
    return writing.unfinished && writing.from >= memory.data() &&
           writing.from < memory.data() + memory.size();
  });
}

Refusal StreamBackend::ask_read(Contact& contact, const Remote& target,
                                const Operation& operation) {
  if (contact.reads.full() || contact.outbox.offer(sizeof(EntryHead)) == 0)
    return Refusal::queue_full;
  if (operation.completion != nullptr) begin(*operation.completion);
  contact.reads.push({.completion = operation.completion,
                      .to = static_cast<std::byte*>(operation.local),
                      .region = target.number,
                      .ask_at = operation.offset,
                      .left_to_ask = operation.bytes,
                      .get_at = operation.offset,
                      .left_to_get = operation.bytes});
  ask_for_reads(contact);
  return Refusal::none;
}

/// Asks for the next pieces of reads, in order, as far as the window allows. A read that waits for
/// the window may be done later than operations posted after it.
void StreamBackend::ask_for_reads(Contact& contact) {
  for (; contact.next_read < contact.reads.pushed(); ++contact.next_read) {
    Reading& reading = contact.reads.at(contact.next_read);
    do {
      const std::uint64_t piece =
          std::min(reading.left_to_ask, kReadPieceBytes - reading.ask_at % kCacheLineBytes);
      if (contact.read_bytes_under_way + piece > kReadWindowBytes) return;
      const EntryHead head{.kind = EntryKind::read,
                           .bytes = static_cast<std::uint32_t>(piece),
                           .region = reading.region,
                           .ticket = static_cast<std::uint32_t>(contact.next_read),
                           .value = reading.ask_at};
      static_cast<void>(contact.outbox.insist(sizeof head));
      begin_entry(contact.outbox.take(sizeof head), head);
      contact.read_bytes_under_way += piece;
      reading.ask_at += piece;
      reading.left_to_ask -= piece;
    } while (reading.left_to_ask > 0);
  }
}

Refusal StreamBackend::ask_atomic(Contact& contact, const Remote& target,
                                  const Operation& operation) {
  const bool asks =
      operation.completion != nullptr || operation.local != nullptr || awaits_answers_;
  if (asks && contact.atomics.full()) return Refusal::queue_full;
  const bool swaps = operation.kind == OperationKind::compare_swap;
  const std::uint64_t operands[] = {operation.operand, operation.desired};
  const EntryHead head{
      .kind = swaps ? EntryKind::compare_swap : EntryKind::fetch_add,
      .flags = asks ? kAsks : std::uint8_t{0},
      .bytes = static_cast<std::uint32_t>(swaps ? sizeof operands : sizeof operands[0]),
      .region = target.number,
      .ticket = asks ? static_cast<std::uint32_t>(contact.atomics.pushed()) : 0,
      .value = operation.offset};
  if (contact.outbox.offer(entry_bytes(head)) == 0) return Refusal::queue_full;
  std::memcpy(begin_entry(contact.outbox.take(entry_bytes(head)), head), operands, head.bytes);
  if (!asks) return Refusal::none;
  if (operation.completion != nullptr) begin(*operation.completion);
  contact.atomics.push({operation.completion, operation.local});
  return Refusal::none;
}

}  // namespace dunlin::stream
