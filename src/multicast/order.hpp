#pragma once

#include <cstdint>
#include <optional>
#include <span>

/// The arithmetic of the order: slots, numbers, receipts, nulls, stability. Pure. A view's senders
/// are counted from 0; slot i of sender s has the number i S + s, S being how many there are.
///
/// Spans are indexed by sender: `taken`, how many slots it is known to have taken; `real`, how many
/// of these up to its last record, so that slots from there on are nulls.
namespace dunlin::multicast::order {

[[nodiscard]] inline std::uint64_t sequence_of(std::uint64_t slot, std::size_t sender,
                                               std::size_t senders) noexcept {
  return slot * senders + sender;
}

/// How many slots of the sender have numbers below this one.
[[nodiscard]] inline std::uint64_t slots_below(std::uint64_t sequence, std::size_t sender,
                                               std::size_t senders) noexcept {
  return sequence / senders + (sender < sequence % senders ? 1 : 0);
}

/// The lowest number that has not been received.
[[nodiscard]] inline std::uint64_t received(std::span<const std::uint64_t> taken) noexcept {
  std::uint64_t lowest = UINT64_MAX;
  for (std::size_t s = 0; s < taken.size(); ++s) {
    const std::uint64_t sequence = sequence_of(taken[s], s, taken.size());
    lowest = sequence < lowest ? sequence : lowest;
  }
  return lowest;
}

/// How many slots `me` must have taken, so that no message of another sender waits for it. Only
/// messages count, not nulls: so when no member sends, no member takes slots.
[[nodiscard]] inline std::uint64_t slots_due(std::span<const std::uint64_t> real,
                                             std::size_t me) noexcept {
  std::uint64_t due = 0;
  for (std::size_t s = 0; s < real.size(); ++s) {
    if (s == me || real[s] == 0) continue;
    const std::uint64_t slots = real[s] - (s < me ? 1 : 0);
    due = slots > due ? slots : due;
  }
  return due;
}

/// A sender that has taken nulls so often in a row, without a message of its own between them,
/// takes further ones ahead: it is left out of the rounds until it speaks (MC-B7).
inline constexpr std::uint64_t kNullsUntilLeftOut = 8;
inline constexpr std::uint64_t kMostRoundsAhead = 4096;

/// Up to which slot a sender takes nulls, if its slots below `due` are waited for, `silent` slots
/// of it are nulls since its last message, and it has taken them in so many parts. The rounds ahead
/// double as it stays silent.
[[nodiscard]] inline std::uint64_t nulls_up_to(std::uint64_t due, std::uint64_t silent,
                                               std::uint64_t parts) noexcept {
  if (parts < kNullsUntilLeftOut) return due;
  return due + (silent < kMostRoundsAhead ? silent : kMostRoundsAhead);
}

/// The lowest number from `from` on that may be a message; senders' slots that are not known yet
/// may be. Messages of `except` do not count.
[[nodiscard]] std::uint64_t next_message(std::uint64_t from, std::optional<std::size_t> except,
                                         std::span<const std::uint64_t> taken,
                                         std::span<const std::uint64_t> real) noexcept;

/// A member says that it has received all numbers below `received`; it is sender `itself`, if it is
/// one. The lowest number that may be a message and that it may not have: its own it has, and of a
/// null there is nothing to have.
[[nodiscard]] inline std::uint64_t stable_below(std::uint64_t received,
                                                std::optional<std::size_t> itself,
                                                std::span<const std::uint64_t> taken,
                                                std::span<const std::uint64_t> real) noexcept {
  return next_message(received, itself, taken, real);
}

/// Whether others may wait to hear of receipts from number `said` to `received`: there may be a
/// message between them that is not our own (`me`).
[[nodiscard]] inline bool worth_publishing(std::uint64_t said, std::uint64_t received,
                                           std::optional<std::size_t> me,
                                           std::span<const std::uint64_t> taken,
                                           std::span<const std::uint64_t> real) noexcept {
  return said < received && next_message(said, me, taken, real) < received;
}

}  // namespace dunlin::multicast::order
