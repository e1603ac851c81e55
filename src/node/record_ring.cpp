#include <bit>
#include <cstring>
#include <new>

#include <dunlin/node/record_ring.hpp>

#include "assert.hpp"

namespace dunlin::node {
namespace {

constexpr std::align_val_t kAlignment{128};

}  // namespace

void RecordRing::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, kAlignment);
}

RecordRing::RecordRing(std::size_t bytes)
    : capacity_(bytes), memory_(static_cast<std::byte*>(::operator new(bytes, kAlignment))) {
  DUNLIN_ASSERT_ALWAYS(std::has_single_bit(bytes) && bytes >= 1'024,
                       "a ring of records has a power of two of bytes");
  std::memset(memory_.get(), 0, bytes);
}

std::byte* RecordRing::claim(std::size_t bytes, Claim& why) noexcept {
  if (bytes > longest()) {
    why = Claim::too_long;
    return nullptr;
  }
  const std::size_t room = room_of(bytes);
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (;;) {
    if ((tail & kClosed) != 0) {
      why = Claim::closed;
      return nullptr;
    }
    const std::size_t to_end = capacity_ - (tail & (capacity_ - 1));
    const std::size_t padding = room > to_end ? to_end : 0;  // NODE-R2
    const std::uint64_t next = tail + padding + room;
    if (next - seen_head_.load(std::memory_order_acquire) > capacity_) {
      const std::uint64_t head = head_.load(std::memory_order_acquire);  // NODE-R4
      seen_head_.store(head, std::memory_order_release);
      if (next - head > capacity_) {
        const std::uint64_t now = tail_.load(std::memory_order_relaxed);
        if (now != tail) {  // ours was older than the head
          tail = now;
          continue;
        }
        why = Claim::full;
        return nullptr;
      }
    }
    if (!tail_.compare_exchange_weak(tail, next, std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
      continue;
    if (padding != 0)
      header_at(tail).store(padding << kBytesShift | kReady | kPadding, std::memory_order_release);
    why = Claim::ok;
    return record_at(tail + padding);
  }
}

void RecordRing::publish(std::byte* record, std::size_t bytes) noexcept {
  auto& header = *reinterpret_cast<std::atomic<std::uint64_t>*>(record - kHeaderBytes);
  DUNLIN_ASSERT(header.load(std::memory_order_relaxed) == 0, "NODE-R1: a claimed record is clear");
  header.store(bytes << kBytesShift | kReady, std::memory_order_release);  // NODE-R3
}

/// Clears the record (NODE-R1), and lets writers have its bytes.
std::uint64_t RecordRing::pass(std::uint64_t head, std::uint64_t header) noexcept {
  const std::size_t bytes = header >> kBytesShift;
  const std::size_t room = (header & kPadding) != 0 ? bytes : room_of(bytes);
  // Headers are atomic words; the bytes between them are not.
  header_at(head).store(0, std::memory_order_relaxed);
  if ((header & kPadding) == 0) std::memset(record_at(head), 0, room - kHeaderBytes);
  head_.store(head + room, std::memory_order_release);  // NODE-R4
  return head + room;
}

}  // namespace dunlin::node
