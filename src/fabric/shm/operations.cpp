#include <unistd.h>

#include "fabric/shm/shm_fabric.hpp"

namespace dunlin::shm {
namespace {

bool is_atomic(OperationKind kind) noexcept {
  return kind == OperationKind::fetch_add || kind == OperationKind::compare_swap;
}

/// Words can only be copied as words if they lie alike in source and target.
[[gnu::always_inline]] inline bool lie_alike(const void* local, std::uint64_t offset) noexcept {
  return (reinterpret_cast<std::uintptr_t>(local) - offset) % kWordBytes == 0;
}

void give_former(void* local, std::uint64_t value) noexcept {
  if (local != nullptr) std::memcpy(local, &value, sizeof value);
}

}  // namespace

/// Everything happens here and now, so an operation is finished when post() returns.
Posted ShmFabric::post(std::span<const Operation> batch) noexcept {
  Posted posted;
  if (batch.size() == 1) [[likely]] {  // a push of one column to one peer: no second loop
    const Operation& operation = batch.front();
    posted.refusal = perform(operation);
    if (posted.refusal != Refusal::none) [[unlikely]]
      return posted;
    posted.accepted = 1;
    if (operation.kind != OperationKind::read) wake_if_asleep(doors_[operation.peer]);
    return posted;
  }
  for (const Operation& operation : batch) {
    posted.refusal = perform(operation);
    if (posted.refusal != Refusal::none) break;
    ++posted.accepted;
  }
  Rank told = UINT32_MAX;
  for (const Operation& operation : batch.first(posted.accepted)) {
    if (operation.peer == told || operation.kind == OperationKind::read) continue;
    told = operation.peer;
    wake_if_asleep(doors_[told]);
  }
  return posted;
}

[[gnu::always_inline]] inline Refusal ShmFabric::perform(const Operation& operation) noexcept {
  if (operation.peer >= members_ || operation.region.index >= kMaxRegions) [[unlikely]]
    return refuse(operation);
  const Remote& target = remote(operation.peer, operation.region);
  const std::size_t bytes = is_atomic(operation.kind) ? kWordBytes : operation.bytes;
  if (target.bytes == 0 || bytes > target.bytes || operation.offset > target.bytes - bytes)
      [[unlikely]]
    return refuse(operation);
  std::byte* at = target.memory + operation.offset;
  switch (operation.kind) {
    case OperationKind::write:
      if (!lie_alike(operation.local, operation.offset)) return Refusal::misaligned;
      memory::place(at, operation.local, bytes);
      break;
    case OperationKind::put:
      memory::copy_unwatched(at, operation.local, bytes);
      break;
    case OperationKind::read:
      if (!lie_alike(operation.local, operation.offset)) return Refusal::misaligned;
      memory::fetch(operation.local, at, bytes);
      break;
    case OperationKind::fetch_add:
      if (operation.offset % kWordBytes != 0) return Refusal::misaligned;
      give_former(operation.local, memory::fetch_add(at, operation.operand));
      break;
    case OperationKind::compare_swap:
      if (operation.offset % kWordBytes != 0) return Refusal::misaligned;
      give_former(operation.local, memory::compare_swap(at, operation.operand, operation.desired));
      break;
  }
  return Refusal::none;
}

/// Why there is no memory for the operation; if the peer has failed, that is how it completes.
Refusal ShmFabric::refuse(const Operation& operation) noexcept {
  if (operation.peer >= size()) return Refusal::unknown_peer;
  if (operation.region.index >= kMaxRegions || !locals_[operation.region.index])
    return Refusal::unknown_region;
  if (failed(operation.peer)) {
    if (operation.completion != nullptr) {
      begin(*operation.completion);
      finish_failed(*operation.completion, operation.peer);
    }
    return Refusal::none;
  }
  return connected(operation.peer, operation.region) ? Refusal::out_of_bounds
                                                     : Refusal::not_connected;
}

/// First the bell: were we stopped in between, the others would still ring. And not just any 1:
/// when we go on, the peer may be in a later sleep, for which nobody has rung.
void ShmFabric::ring(const Door& door, std::uint64_t sleep) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(door.bell, &one, sizeof one));  // full: it is ringing anyway
  memory::compare_swap(&door.base->sleeping, sleep, 0);
}

}  // namespace dunlin::shm
