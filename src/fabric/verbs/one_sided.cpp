#include <algorithm>
#include <array>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "fabric/alignment.hpp"
#include "fabric/verbs/verbs_transport.hpp"

/// The operations that the device performs in a peer's memory by itself.
namespace dunlin::verbs {
namespace {

/// An operation on memory of our own region goes in at most so many pieces, each of which the
/// device takes at once.
constexpr std::uint64_t kMaxPieces = 16;

bool asks_for_placement(const Operation& operation) noexcept {
  return operation.completion != nullptr && operation.when == Notify::remotely;
}

std::uint64_t word_before(std::uint64_t offset) noexcept { return offset - offset % kWordBytes; }

/// The whole words around the bytes that a read wants.
struct Words {
  std::uint64_t begin;
  std::uint32_t bytes;
  explicit Words(const Operation& read) noexcept
      : begin(word_before(read.offset)),
        bytes(static_cast<std::uint32_t>(stream::whole_words(read.offset + read.bytes) - begin)) {}
};

std::uint32_t whole_lines(std::uint32_t bytes) noexcept {
  return static_cast<std::uint32_t>(round_up(bytes, kCacheLineBytes));
}

void aim(ibv_send_wr& request, const stream::Key& region, std::uint64_t offset) noexcept {
  request.wr.rdma.remote_addr = region.address + offset;
  request.wr.rdma.rkey = region.key;
}

}  // namespace

bool VerbsTransport::has_room(const Link& link, std::uint32_t requests) const noexcept {
  return link.queue.room() >= requests + kReservedSlots;
}

bool VerbsTransport::can(const Operation& operation) const noexcept {
  if (operation.bytes <= inline_bytes_) return true;
  if (operation.kind == OperationKind::read) {
    const std::size_t times = traits_.in_software ? 3 : 1;
    return times * (operation.bytes + 2 * kCacheLineBytes) <= kMaxStagedBytes;
  }
  if (operation.bytes <= kMaxStagedBytes / 2) return true;
  return operation.bytes <= kMaxPieces * traits_.max_operation_bytes &&
         opened(operation.local, operation.bytes) != nullptr;
}

stream::DeviceOperations::Started VerbsTransport::start(const Operation& operation,
                                                        const stream::Key& region,
                                                        std::uint64_t region_bytes) noexcept {
  if (links_[operation.peer].ended) return Started::full;
  switch (operation.kind) {
    case OperationKind::put:
    case OperationKind::write:
      return start_write(operation, region, region_bytes);
    case OperationKind::read:
      return start_read(operation, region);
    case OperationKind::fetch_add:
    case OperationKind::compare_swap:
      break;
  }
  return start_atomic(operation, region);
}

/// Starts a write. The device reads the source in place, if that is in our own region and not
/// short; otherwise it reads a copy, and the source may be reused at once.
stream::DeviceOperations::Started VerbsTransport::start_write(const Operation& operation,
                                                              const stream::Key& region,
                                                              std::uint64_t region_bytes) noexcept {
  Link& link = links_[operation.peer];
  const bool placed = asks_for_placement(operation);
  const bool is_inline = operation.bytes <= inline_bytes_;
  const Opened* const own = is_inline ? nullptr : opened(operation.local, operation.bytes);
  const std::uint64_t most = traits_.max_operation_bytes;
  const auto pieces =
      own == nullptr ? 1 : static_cast<std::uint32_t>((operation.bytes + most - 1) / most);
  if (!has_room(link, pieces + (placed ? 1 : 0))) return Started::full;
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(operation.local),
                static_cast<std::uint32_t>(operation.bytes), 0};
  Record record;
  unsigned flags = 0;
  if (is_inline) {
    flags = IBV_SEND_INLINE;
  } else if (own != nullptr) {
    piece.lkey = own->registration->lkey;
  } else {
    const std::size_t lead = operation.offset % kWordBytes;
    const SendQueue::Staged copy = link.queue.stage(lead + operation.bytes);
    if (copy.memory == nullptr) return Started::full;
    if (operation.kind == OperationKind::put)
      memory::copy_unwatched(copy.memory + lead, operation.local, operation.bytes);
    else
      memory::place(copy.memory + lead, operation.local, operation.bytes);
    piece.addr = reinterpret_cast<std::uintptr_t>(copy.memory + lead);
    piece.lkey = link.queue.staging_key();
    record.staged_bytes = copy.bytes;
  }
  std::uint64_t left = operation.bytes;
  std::uint64_t offset = operation.offset;
  const bool waits = own != nullptr && operation.completion != nullptr && !placed;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    piece.length = static_cast<std::uint32_t>(std::min(left, most));
    left -= piece.length;
    if (waits && left == 0) {
      record.kind = Record::Kind::done;
      record.completion = operation.completion;
    }
    aim(link.queue.add(IBV_WR_RDMA_WRITE, piece, record, link.tag, flags), region, offset);
    offset += piece.length;
    piece.addr += piece.length;
  }
  if (placed) add_proof_of_placement(operation, region, region_bytes);
  return waits || placed ? Started::pending : Started::done;
}

/// Adds a read that proves placement. A write's completion only says that the peer's device has it.
/// Writes that a later read has seen, or could have seen, are placed.
void VerbsTransport::add_proof_of_placement(const Operation& operation, const stream::Key& region,
                                            std::uint64_t region_bytes) noexcept {
  Link& link = links_[operation.peer];
  const std::uint64_t last = word_before(operation.offset + operation.bytes - 1);
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kWordBytes, region_bytes - last));
  // The bytes are thrown away, so they may overlap others.
  const ibv_sge piece{reinterpret_cast<std::uintptr_t>(link.queue.scrap()), bytes,
                      link.queue.staging_key()};
  aim(link.queue.add(IBV_WR_RDMA_READ, piece,
                     {.kind = Record::Kind::done, .completion = operation.completion}, link.tag),
      region, last);
}

/// A device made of software fetches a line word by word in ascending order, where FAB-F2 wants the
/// last word first and the first word last. So it fetches the line three times, one after the
/// other, and give_result() takes the last word from the first copy and the first word from the
/// last.
stream::DeviceOperations::Started VerbsTransport::start_read(const Operation& operation,
                                                             const stream::Key& region) noexcept {
  Link& link = links_[operation.peer];
  const Words words(operation);
  const bool thrice = traits_.in_software && words.bytes > kWordBytes;
  const std::uint32_t copies = thrice ? 3 : 1;
  if (!has_room(link, copies)) return Started::full;
  const std::uint32_t stride = whole_lines(words.bytes);
  const SendQueue::Staged space = link.queue.stage(std::size_t{copies} * stride);
  if (space.memory == nullptr) return Started::full;
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(space.memory), words.bytes,
                link.queue.staging_key()};
  for (std::uint32_t i = 1; i < copies; ++i) {
    aim(link.queue.add(IBV_WR_RDMA_READ, piece, {}, link.tag), region, words.begin);
    piece.addr += stride;
  }
  const Record record{.kind = thrice ? Record::Kind::sandwich : Record::Kind::result,
                      .staged_bytes = space.bytes,
                      .at = space.at,
                      .lead = static_cast<std::uint32_t>(operation.offset - words.begin),
                      .bytes = static_cast<std::uint32_t>(operation.bytes),
                      .offset = words.begin,
                      .to = static_cast<std::byte*>(operation.local),
                      .completion = operation.completion};
  aim(link.queue.add(IBV_WR_RDMA_READ, piece, record, link.tag), region, words.begin);
  return Started::pending;
}

void VerbsTransport::give_result(const Link& link, const Record& record) const noexcept {
  std::byte* result = link.queue.staged(record.at);
  if (record.kind == Record::Kind::sandwich) {
    const auto bytes = static_cast<std::uint32_t>(stream::whole_words(record.lead + record.bytes));
    const std::uint32_t stride = whole_lines(bytes);
    const std::byte* const first = result;
    const std::byte* const last = result + 2 * stride;
    result += stride;
    for (std::uint32_t at = 0; at < bytes; at += kWordBytes) {
      const bool begins = at == 0 || (record.offset + at) % kCacheLineBytes == 0;
      const bool ends =
          at + kWordBytes == bytes || (record.offset + at + kWordBytes) % kCacheLineBytes == 0;
      if (begins != ends) std::memcpy(result + at, (begins ? last : first) + at, kWordBytes);
    }
  }
  memory::place(record.to, result + record.lead, record.bytes);
}

stream::DeviceOperations::Started VerbsTransport::start_atomic(const Operation& operation,
                                                               const stream::Key& region) noexcept {
  Link& link = links_[operation.peer];
  if (!has_room(link, 1)) return Started::full;
  const SendQueue::Staged space = link.queue.stage(kWordBytes);
  if (space.memory == nullptr) return Started::full;
  const bool swaps = operation.kind == OperationKind::compare_swap;
  ibv_send_wr& request = link.queue.add(
      swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
      {reinterpret_cast<std::uintptr_t>(space.memory), kWordBytes, link.queue.staging_key()},
      {.kind = Record::Kind::result,
       .staged_bytes = space.bytes,
       .at = space.at,
       .bytes = kWordBytes,
       .to = static_cast<std::byte*>(operation.local),
       .completion = operation.completion},
      link.tag);
  request.wr.atomic.remote_addr = region.address + operation.offset;
  request.wr.atomic.rkey = region.key;
  request.wr.atomic.compare_add = operation.operand;
  request.wr.atomic.swap = operation.desired;
  return Started::pending;
}

std::uint64_t VerbsTransport::started(Rank peer) const noexcept {
  return links_[peer].queue.added();
}

std::uint64_t VerbsTransport::fetches(Rank peer) const noexcept {
  return links_[peer].queue.fetches();
}

/// Whether operations are finished. An operation without a waiting caller is finished when a later
/// frame is: here, that of a withdrawal.
bool VerbsTransport::finished(Rank peer, std::uint64_t up_to) const noexcept {
  return links_[peer].queue.retired() >= up_to;
}

void VerbsTransport::forget(const Completion& completion) noexcept {
  for (Link& link : links_)
    link.queue.each([&](Record& record) {
      if (record.completion == &completion) record.forget();
    });
}

void VerbsTransport::give_up(Rank peer, stream::Receiver& receiver) noexcept {
  Link& link = links_[peer];
  link.queue.each([&](const Record& record) {
    if (record.completion != nullptr) receiver.take_finished(peer, *record.completion, false);
  });
  link.queue.clear();
}

}  // namespace dunlin::verbs
