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
                                 .reads_are_loads = true,
                                 .expel_fences = false};

void give_former(void* local, std::uint64_t value) noexcept {
  if (local != nullptr) std::memcpy(local, &value, sizeof value);
}

}  // namespace

/// Performs the operations at once, so that each is finished when post() returns.
Posted ShmBackend::post(std::span<const Operation> batch) noexcept {
  Posted posted;
  if (batch.size() == 1) [[likely]] {  // a push of one column to one peer
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

void ShmBackend::prefetch(Rank peer, RegionId region, std::uint64_t offset,
                          std::size_t bytes) noexcept {
  if (peer >= members_ || region.index >= kMaxRegions) return;
  const Target& there = target(peer, region);
  if (offset > there.bytes || bytes > there.bytes - offset) return;
  const std::byte* const from = there.memory + offset;
  for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) __builtin_prefetch(from + at);
}

std::span<std::byte> ShmBackend::memory_of(Rank peer, RegionId region) noexcept {
  if (peer >= members_ || region.index >= kMaxRegions) return {};
  const Target& there = target(peer, region);
  return {there.memory, there.bytes};
}

void ShmBackend::wake(Rank peer) noexcept {
  if (peer < members_) wake_if_asleep(attention_[peer]);
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

/// Rings a sleeper. The bell comes first: were we stopped in between, other writers would still
/// ring. Then only this sleep's number is changed to 0: when we go on, the peer may be in a later
/// sleep, for which no writer has rung.
void ShmBackend::ring(const Attention& peer, std::uint64_t sleep) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(peer.bell, &one, sizeof one));  // if it is full, it rings anyway
  memory::compare_swap(&peer.base->sleeping, sleep, 0);
}

/// Makes the fabric here, where the compiler sees post() and poll(), which become part of what the
/// fabric calls.
std::unique_ptr<Fabric> make_shm_fabric(Attachment attachment) {
  const int bell = attachment.bell.get();
  FabricSetup setup{.kind = "shm",
                    .description = "shared memory of this host" + attachment.place,
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
