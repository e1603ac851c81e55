#include "multicast/receipts.hpp"

#include <algorithm>
#include <cstring>

#include "assert.hpp"
#include "multicast/order.hpp"

namespace dunlin::multicast {

Receipts::Receipts(ViewMemory& memory, Counters& counters)
    : memory_(memory),
      counters_(counters),
      own_(memory.own_sender_rank().value_or(memory.senders())),
      taken_(memory.senders()),
      real_(memory.senders()),
      inlined_(memory.senders()),
      others_received_(memory.members()) {}

Receipts::News Receipts::poll() noexcept {
  const ViewMemory& memory = memory_;  // in a register: rows are read with barriers
  const std::size_t senders = taken_.size();
  std::uint64_t slots = 0;
  bool found = false;
  for (std::size_t sender_rank = 0; sender_rank < senders; ++sender_rank) {
    if (sender_rank == own_) continue;
    const std::uint64_t before = taken_[sender_rank];
    if (!note_slots(memory, sender_rank)) continue;
    found = true;
    slots += taken_[sender_rank] - before;
  }
  const bool ordered = memory.ordered();
  if (ordered) note_receipts(memory);
  if (!found) return {.done = ordered && changed_ ? 1U : 0U};
  changed_ = true;
  counters_.slots_received += slots;
  ++counters_.receive_batches;
  if (!ordered) return {.done = slots};
  received_ = order::received(taken_);
  return {.done = 1, .ordered_slots = true};
}

/// Reads `sent` before `real`, and so knows of each slot below `sent` whether it is a null.
inline bool Receipts::note_slots(const ViewMemory& memory, std::size_t sender_rank) noexcept {
  const SubgroupViewOptions& options = memory.options();
  const std::size_t member = options.senders[sender_rank];
  const std::uint64_t sent = memory.seen(member, row::kSent);
  if (sent <= taken_[sender_rank]) return false;
  if (options.mode == Mode::ordered) keep_inlined(sender_rank, member);
  taken_[sender_rank] = options.switches.batch_receive ? sent : taken_[sender_rank] + 1;
  real_[sender_rank] = std::max(real_[sender_rank], memory.seen(member, row::kReal));
  return true;
}

inline void Receipts::note_receipts(const ViewMemory& memory) noexcept {
  const std::size_t me = memory.me();
  const std::size_t members = others_received_.size();
  for (std::size_t member = 0; member < members; ++member) {
    if (member == me) continue;
    const std::uint64_t received = memory.seen(member, row::kReceived);
    if (received <= others_received_[member]) continue;
    others_received_[member] = received;
    changed_ = true;
  }
}

/// Called before this member says that it has the words, as the sender may replace them then.
void Receipts::keep_inlined(std::size_t sender_rank, std::size_t member) noexcept {
  Inlined& inlined = inlined_[sender_rank];
  const std::uint64_t which = memory_.seen(member, row::kInlinedAt);
  if (which == inlined.which) return;
  if (inlined.kept) [[unlikely]]  // the deliverer does not store them, as nothing is delivered now
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
  // A peer may have spoilt its line (MC-R3).
  if (words > row::kMaxInlinedWords || ring.bytes - place < words * kWordBytes) return;
  std::memcpy(ring.memory + place, inlined.words.data(), words * kWordBytes);
}

void Receipts::announced(std::uint64_t slots, std::uint64_t real) noexcept {
  DUNLIN_ASSERT(own_ < taken_.size(), "MC-B1: only a sender announces slots");
  taken_[own_] = slots;
  real_[own_] = real;
  received_ = order::received(taken_);
  changed_ = true;
}

void Receipts::find_stable() noexcept {
  const ViewMemory& memory = memory_;
  std::uint64_t stable = received_;
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    const std::uint64_t received = others_received_[member];
    if (member == memory.me() || received >= stable) continue;
    stable = std::min(stable,
                      order::stable_below(received, memory.sender_rank_of(member), taken_, real_));
  }
  stable_ = stable;
  DUNLIN_ASSERT(stable_ <= received_, "MC-O3: what is stable has been received here");
}

}  // namespace dunlin::multicast
