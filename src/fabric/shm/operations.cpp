#include <unistd.h>

#include "fabric/alignment.hpp"
#include "fabric/shm/shm_backend.hpp"

namespace dunlin::shm {
namespace {

constexpr Properties kProperties{.passive_target = true,
                                 .ordered_placement = true,
                                 .native_atomics = true,
                                 .atomics_coherent_with_cpu = true,
                                 .max_inline_bytes = UINT32_MAX,
                                 .max_peers = kMaxHostMembers,
                                 .queue_slots = UINT32_MAX,
                                 .expel_fences = false};

void give_former(void* local, std::uint64_t value) noexcept {
  if (local != nullptr) std::memcpy(local, &value, sizeof value);
}

}  // namespace

/// Everything happens here and now, so an operation is finished when post() returns.
Posted ShmBackend::post(std::span<const Operation> batch) noexcept {
  Posted posted;
  if (batch.size() == 1) [[likely]] {  // a push of one column to one peer: no second loop
    const Operation& operation = batch.front();
    posted.refusal = perform(operation);
    if (posted.refusal != Refusal::none) [[unlikely]]
      return posted;
    posted.accepted = 1;
    if (operation.kind != OperationKind::read) wake_if_asleep(attention_[operation.peer]);
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
    wake_if_asleep(attention_[told]);
  }
  return posted;
}

[[gnu::always_inline]] inline Refusal ShmBackend::perform(const Operation& operation) noexcept {
  if (operation.peer >= members_ || operation.region.index >= kMaxRegions) [[unlikely]]
    return core().refuse(operation);
  const Target& there = target(operation.peer, operation.region);
  const std::size_t bytes = extent_of(operation);
  if (there.bytes == 0 || bytes > there.bytes || operation.offset > there.bytes - bytes)
      [[unlikely]]
    return core().refuse(operation);
  std::byte* at = there.memory + operation.offset;
  switch (operation.kind) {
    case OperationKind::write:
      if (!lies_alike(operation)) return Refusal::misaligned;
      memory::place(at, operation.local, bytes);
      break;
    case OperationKind::put:
      memory::copy_unwatched(at, operation.local, bytes);
      break;
    case OperationKind::read:
      if (!lies_alike(operation)) return Refusal::misaligned;
      memory::fetch(operation.local, at, bytes);
      break;
    case OperationKind::fetch_add:
      if (!lies_on_words(operation)) return Refusal::misaligned;
      give_former(operation.local, memory::fetch_add(at, operation.operand));
      break;
    case OperationKind::compare_swap:
      if (!lies_on_words(operation)) return Refusal::misaligned;
      give_former(operation.local, memory::compare_swap(at, operation.operand, operation.desired));
      break;
  }
  return Refusal::none;
}

/// First the bell: were we stopped in between, the others would still ring. And not just any 1:
/// when we go on, the peer may be in a later sleep, for which no writer has rung.
void ShmBackend::ring(const Attention& peer, std::uint64_t sleep) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(peer.bell, &one, sizeof one));  // full: it is ringing anyway
  memory::compare_swap(&peer.base->sleeping, sleep, 0);
}

/// Here, where the compiler sees post() and poll(): they become part of what the fabric calls.
std::unique_ptr<Fabric> make_shm_fabric(Attachment attachment) {
  const int bell = attachment.bell.get();
  FabricSetup setup{.kind = "shm",
                    .description = "shared memory of this host",
                    .group = attachment.self.group,
                    .rank = attachment.self.rank,
                    .names = attachment.self.names,
                    .absent = attachment.absent,
                    .properties = kProperties,
                    .silence_timeout_ms = attachment.self.silence_timeout_ms,
                    .sleeper = Sleeper(std::move(attachment.bell))};
  return make_fabric(std::move(setup), std::make_unique<ShmBackend>(std::move(attachment), bell));
}

}  // namespace dunlin::shm
