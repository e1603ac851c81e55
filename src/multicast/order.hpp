#pragma once

#include <cstdint>
#include <optional>
#include <span>

/// The arithmetic of the order: turns, numbers, receipts, nulls, stability. Pure. A view's senders
/// are counted from 0; turn i of sender s has the number i S + s, S being how many there are.
///
/// Spans are indexed by sender: `taken`, how many turns it is known to have taken; `real`, how many
/// of these up to its last record, so that turns from there on are nulls.
namespace dunlin::multicast::order {

[[nodiscard]] inline std::uint64_t number_of(std::uint64_t turn, std::size_t sender,
                                             std::size_t senders) noexcept {
  return turn * senders + sender;
}

/// How many turns of the sender have numbers below this one.
[[nodiscard]] inline std::uint64_t turns_below(std::uint64_t number, std::size_t sender,
                                               std::size_t senders) noexcept {
  return number / senders + (sender < number % senders ? 1 : 0);
}

/// The lowest number that has not been received.
[[nodiscard]] inline std::uint64_t received(std::span<const std::uint64_t> taken) noexcept {
  std::uint64_t lowest = UINT64_MAX;
  for (std::size_t s = 0; s < taken.size(); ++s) {
    const std::uint64_t number = number_of(taken[s], s, taken.size());
    lowest = number < lowest ? number : lowest;
  }
  return lowest;
}

/// How many turns `me` must have taken, so that no message of another sender waits for it. Only
/// messages count, not nulls: so when nobody sends, nobody takes turns.
[[nodiscard]] inline std::uint64_t turns_due(std::span<const std::uint64_t> real,
                                             std::size_t me) noexcept {
  std::uint64_t due = 0;
  for (std::size_t s = 0; s < real.size(); ++s) {
    if (s == me || real[s] == 0) continue;
    const std::uint64_t turns = real[s] - (s < me ? 1 : 0);
    due = turns > due ? turns : due;
  }
  return due;
}

/// The lowest number from `from` on that may be a message; senders' turns that are not known yet
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
[[nodiscard]] inline bool worth_saying(std::uint64_t said, std::uint64_t received,
                                       std::optional<std::size_t> me,
                                       std::span<const std::uint64_t> taken,
                                       std::span<const std::uint64_t> real) noexcept {
  return said < received && next_message(said, me, taken, real) < received;
}

}  // namespace dunlin::multicast::order
