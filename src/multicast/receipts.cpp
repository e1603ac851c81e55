#include "multicast/receipts.hpp"

#include <algorithm>
#include <cstring>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "multicast/order.hpp"

namespace dunlin::multicast {

Receipts::Receipts(ViewMemory& memory, Counters& counters)
    : memory_(memory),
      counters_(counters),
      taken_(memory.senders()),
      real_(memory.senders()),
      inlined_(memory.senders()),
      others_received_(memory.members()) {}

Receipts::News Receipts::poll() noexcept {
  const SenderRank own = memory_.own_sender_rank();
  std::uint64_t slots = 0;
  bool found = false;
  for (std::size_t sender_rank = 0; sender_rank < taken_.size(); ++sender_rank) {
    if (sender_rank == own) continue;
    const std::uint64_t before = taken_[sender_rank];
    if (!note_slots(sender_rank)) continue;
    found = true;
    slots += taken_[sender_rank] - before;
  }
  const bool ordered = memory_.ordered();
  if (ordered) note_receipts();
  if (!found) return {.done = ordered && changed_ ? 1U : 0U};
  changed_ = true;
  counters_.slots_received += slots;
  ++counters_.receive_batches;
  if (!ordered) return {.done = slots, .slots = true};
  received_ = order::received(taken_);
  return {.done = 1, .slots = true};
}

/// `sent` first, and then `real`: so of each slot below `sent` it is known whether it is a null.
inline bool Receipts::note_slots(std::size_t sender_rank) noexcept {
  const SubgroupViewOptions& options = memory_.options();
  const std::size_t member = options.senders[sender_rank];
  const std::uint64_t sent = memory_.seen(member, row::kSent);
  if (sent <= taken_[sender_rank]) return false;
  if (options.mode == Mode::ordered) keep_inlined(sender_rank, member);
  taken_[sender_rank] = options.switches.batch_receive ? sent : taken_[sender_rank] + 1;
  real_[sender_rank] = std::max(real_[sender_rank], memory_.seen(member, row::kReal));
  return true;
}

inline void Receipts::note_receipts() noexcept {
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    if (member == memory_.me()) continue;
    const std::uint64_t received = memory_.seen(member, row::kReceived);
    if (received <= others_received_[member]) continue;
    others_received_[member] = received;
    changed_ = true;
  }
}

/// Before this member says that it has received it, or the sender could replace it.
void Receipts::keep_inlined(std::size_t sender_rank, std::size_t member) noexcept {
  Inlined& inlined = inlined_[sender_rank];
  const std::uint64_t which = memory_.seen(member, row::kInlinedAt);
  if (which == inlined.which) return;
  if (inlined.kept) [[unlikely]]  // nothing is delivered for the time being
    store_inlined(sender_rank);
  inlined.which = which;
  inlined.kept = true;
  for (std::size_t i = 0; i < row::kMaxInlinedWords; ++i)
    inlined.words[i] = memory_.seen(member, row::kInlined + i * kWordBytes);
}

void Receipts::store_inlined(std::size_t sender_rank) noexcept {
  Inlined& inlined = inlined_[sender_rank];
  inlined.kept = false;
  const RingShape ring = memory_.ring_of(sender_rank);
  const std::size_t place = ring.place(inlined.which) / kWordBytes * kWordBytes;
  const std::size_t words = inlined.which % kWordBytes;
  // A ring, and a line, that a peer has spoilt (MC-R3).
  if (words > row::kMaxInlinedWords || ring.bytes - place < words * kWordBytes) return;
  std::memcpy(ring.memory + place, inlined.words.data(), words * kWordBytes);
}

void Receipts::announced(std::uint64_t slots, std::uint64_t real) noexcept {
  const SenderRank own = memory_.own_sender_rank();
  DUNLIN_ASSERT(own.has_value(), "MC-B1: only a sender announces slots");
  taken_[*own] = slots;
  real_[*own] = real;
  received_ = order::received(taken_);
  changed_ = true;
}

void Receipts::find_stable() noexcept {
  stable_ = received_;
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    const std::uint64_t received = others_received_[member];
    if (member == memory_.me() || received >= stable_ ||
        is_injected(FaultInjection::stable_too_early))
      continue;
    stable_ = std::min(
        stable_, order::stable_below(received, memory_.sender_rank_of(member), taken_, real_));
  }
  DUNLIN_ASSERT(stable_ <= received_, "MC-O3: what is stable has been received here");
}

}  // namespace dunlin::multicast
