#include <algorithm>
#include <cstring>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin::multicast {

/// First stage: what the rows say (MC-B3), and the nulls that others wait for.
std::size_t SubgroupView::receive_stage() noexcept {
  std::uint64_t slots = 0;
  bool found = false;
  for (std::size_t sender_rank = 0; sender_rank < taken_.size(); ++sender_rank) {
    if (sender_rank == own_sender_rank_) continue;
    const std::uint64_t before = taken_[sender_rank];
    if (!note_slots(sender_rank)) continue;
    found = true;
    slots += taken_[sender_rank] - before;
  }
  if (!ordered()) {
    changed_ |= found;
    counters_.slots_received += slots;
    counters_.receive_batches += found ? 1 : 0;
    return slots;
  }
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    if (member == me_) continue;
    if (durable()) {
      const std::uint64_t persisted = seen(member, row::kPersisted);
      changed_ |= persisted > others_persisted_[member];
      others_persisted_[member] = std::max(others_persisted_[member], persisted);
    }
    const std::uint64_t received = seen(member, row::kReceived);
    if (received <= others_received_[member]) continue;
    others_received_[member] = received;
    changed_ = true;
  }
  if (!found) return changed_ ? 1 : 0;
  changed_ = true;
  counters_.slots_received += slots;
  ++counters_.receive_batches;
  received_ = order::received(taken_);
  if (own_sender_rank_ && options_.switches.nulls) {
    std::uint64_t due = order::slots_due(real_, *own_sender_rank_);
    if (is_injected(FaultInjection::nulls_cause_nulls)) due = std::ranges::max(taken_) + 1;
    if (due > writer_.taken()) counters_.nulls += writer_.pass_to(due);
  }
  return 1;
}

/// `sent` first, and then `real`: so of each slot below `sent` it is known whether it is a null.
bool SubgroupView::note_slots(std::size_t sender_rank) noexcept {
  const std::size_t member = options_.senders[sender_rank];
  const std::uint64_t sent = seen(member, row::kSent);
  if (sent <= taken_[sender_rank]) return false;
  if (options_.mode == Mode::ordered) take_inlined(sender_rank);
  taken_[sender_rank] = options_.switches.batch_receive ? sent : taken_[sender_rank] + 1;
  real_[sender_rank] = std::max(real_[sender_rank], seen(member, row::kReal));
  return true;
}

/// Keeps what the line carries: before we say that we have it, or it could be replaced (MC-B6).
void SubgroupView::take_inlined(std::size_t sender_rank) noexcept {
  Inlined& inlined = sources_[sender_rank].inlined;
  const std::size_t member = sources_[sender_rank].member;
  const std::uint64_t which = seen(member, row::kInlinedAt);
  if (which == inlined.which) return;
  if (inlined.kept) [[unlikely]]  // nothing is delivered for the time being
    put_inlined(sender_rank);
  inlined.which = which;
  inlined.kept = true;
  for (std::size_t i = 0; i < row::kMaxInlinedWords; ++i)
    inlined.words[i] = seen(member, row::kInlined + i * kWordBytes);
}

/// To its place in our copy of the ring. That may have to be fetched, so receipts go out first.
void SubgroupView::put_inlined(std::size_t sender_rank) noexcept {
  Inlined& inlined = sources_[sender_rank].inlined;
  inlined.kept = false;
  const RingShape ring = ring_of(sender_rank);
  const std::size_t place = ring.place(inlined.which) / kWordBytes * kWordBytes;
  const std::size_t words = inlined.which % kWordBytes;
  // A ring, and a line, that a peer has spoilt (MC-R3).
  if (words > row::kMaxInlinedWords || ring.bytes - place < words * kWordBytes) return;
  std::memcpy(ring.memory + place, inlined.words.data(), words * kWordBytes);
}

/// Below this number, all members have received every message (MC-O3).
void SubgroupView::find_stable() noexcept {
  stable_ = received_;
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    const std::uint64_t received = others_received_[member];
    if (member == me_ || received >= stable_ || is_injected(FaultInjection::stable_too_early))
      continue;
    stable_ =
        std::min(stable_, order::stable_below(received, sender_rank_of_[member], taken_, real_));
  }
  DUNLIN_ASSERT(stable_ <= received_, "MC-O3: what is stable has been received here");
  deliverable_ = stable_;
}

}  // namespace dunlin::multicast
