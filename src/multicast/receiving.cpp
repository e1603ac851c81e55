#include <algorithm>
#include <cstring>

#include "assert.hpp"
#include "flaw.hpp"
#include "multicast/epoch.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {

/// First stage: what the rows say (MC-B3), and the nulls that others wait for.
std::size_t Epoch::receive_stage() noexcept {
  std::uint64_t turns = 0;
  bool found = false;
  for (std::size_t seat = 0; seat < taken_.size(); ++seat) {
    if (seat == seat_) continue;
    const std::uint64_t before = taken_[seat];
    if (!note_turns(seat)) continue;
    found = true;
    turns += taken_[seat] - before;
  }
  if (!ordered()) {
    changed_ |= found;
    counters_.turns_received += turns;
    counters_.receive_batches += found ? 1 : 0;
    return turns;
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
  counters_.turns_received += turns;
  ++counters_.receive_batches;
  received_ = order::received(taken_);
  if (seat_ && options_.switches.nulls) {
    std::uint64_t due = order::turns_due(real_, *seat_);
    if (flawed(Flaw::nulls_cause_nulls)) due = std::ranges::max(taken_) + 1;
    if (due > writer_.taken()) counters_.nulls += writer_.pass_to(due);
  }
  return 1;
}

/// `sent` first, and then `real`: so of each turn below `sent` it is known whether it is a null.
bool Epoch::note_turns(std::size_t seat) noexcept {
  const std::size_t member = options_.senders[seat];
  const std::uint64_t sent = seen(member, row::kSent);
  if (sent <= taken_[seat]) return false;
  if (options_.mode == Mode::ordered) take_carried(seat);
  taken_[seat] = options_.switches.batch_receive ? sent : taken_[seat] + 1;
  real_[seat] = std::max(real_[seat], seen(member, row::kReal));
  return true;
}

/// Keeps what the line carries: before we say that we have it, or it could be replaced (MC-B6).
void Epoch::take_carried(std::size_t seat) noexcept {
  Carried& carried = sources_[seat].carried;
  const std::size_t member = sources_[seat].member;
  const std::uint64_t which = seen(member, row::kCarried);
  if (which == carried.which) return;
  if (carried.kept) [[unlikely]]  // nothing is delivered for the time being
    put_carried(seat);
  carried.which = which;
  carried.kept = true;
  for (std::size_t i = 0; i < row::kMostCarriedWords; ++i)
    carried.words[i] = seen(member, row::kRun + i * kWordBytes);
}

/// To its place in our copy of the ring. That may have to be fetched, so receipts go out first.
void Epoch::put_carried(std::size_t seat) noexcept {
  Carried& carried = sources_[seat].carried;
  carried.kept = false;
  const RingShape ring = ring_of(seat);
  const std::size_t place = ring.place(carried.which) / kWordBytes * kWordBytes;
  const std::size_t words = carried.which % kWordBytes;
  // A ring, and a line, that a peer has spoilt (MC-R3).
  if (words > row::kMostCarriedWords || ring.bytes - place < words * kWordBytes) return;
  std::memcpy(ring.memory + place, carried.words.data(), words * kWordBytes);
}

/// Below this number, all members have received every message (MC-O3).
void Epoch::find_stable() noexcept {
  stable_ = received_;
  for (std::size_t member = 0; member < others_received_.size(); ++member) {
    const std::uint64_t received = others_received_[member];
    if (member == me_ || received >= stable_ || flawed(Flaw::stable_too_early)) continue;
    stable_ = std::min(stable_, order::stable_below(received, seat_of_[member], taken_, real_));
  }
  DUNLIN_ASSERT(stable_ <= received_, "MC-O3: what is stable has been received here");
  deliverable_ = stable_;
}

}  // namespace dunlin::multicast
