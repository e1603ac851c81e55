#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "multicast/row.hpp"
#include "multicast/view_memory.hpp"

/// A view's first stage: the messages that this member has received, those that the others have
/// received as far as it knows, and therefore which messages are stable. It learns all of that from
/// rows (MC-B3).
namespace dunlin::multicast {

class Receipts {
 public:
  Receipts(ViewMemory& memory, Counters& counters);

  struct News {
    std::size_t done = 0;
    bool ordered_slots = false;  // others may wait for nulls of this member
  };
  /// Reads the others' rows.
  News poll() noexcept;
  /// This member has announced its own slots, and so has received them.
  void announced(std::uint64_t slots, std::uint64_t real) noexcept;

  // --- by sender ---------------------------------------------------------------------------------
  /// How many slots each sender is known to have taken,
  [[nodiscard]] std::span<const std::uint64_t> taken() const noexcept { return taken_; }
  /// and how many of these up to its last record: slots from there on are nulls.
  [[nodiscard]] std::span<const std::uint64_t> real() const noexcept { return real_; }

  // --- sequence numbers --------------------------------------------------------------------------
  /// The lowest that this member has not received,
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// or another one, as far as is known.
  [[nodiscard]] std::uint64_t received_by(std::size_t member) const noexcept {
    return others_received_[member];
  }
  /// All members have received every message below it (MC-O3), as of the last find_stable().
  [[nodiscard]] std::uint64_t stable() const noexcept { return stable_; }
  void find_stable() noexcept;

  // --- whether any of this has changed -----------------------------------------------------------
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  void note_change() noexcept { changed_ = true; }
  /// Whether it has since this was last asked.
  [[nodiscard]] bool take_change() noexcept { return std::exchange(changed_, false); }

  // --- payload that came in a row (MC-B6) --------------------------------------------------------
  [[nodiscard]] bool keeps_inlined(std::size_t sender_rank) const noexcept {
    return inlined_[sender_rank].kept;
  }
  /// Copies it to its place in this member's copy of the ring. That may have to be fetched from
  /// another core, so receipts go out first.
  void store_inlined(std::size_t sender_rank) noexcept;

 private:
  struct Inlined {
    std::uint64_t which = 0;
    bool kept = false;  // here only
    std::array<std::uint64_t, row::kMaxInlinedWords> words = {};
  };

  bool note_slots(const ViewMemory& memory, std::size_t sender_rank) noexcept;
  void note_receipts(const ViewMemory& memory) noexcept;
  void keep_inlined(std::size_t sender_rank, std::size_t member) noexcept;

  ViewMemory& memory_;
  Counters& counters_;
  const std::size_t own_;                       // sender rank; that of no sender if it is none
  std::vector<std::uint64_t> taken_;            // by sender
  std::vector<std::uint64_t> real_;             // by sender
  std::vector<Inlined> inlined_;                // by sender
  std::vector<std::uint64_t> others_received_;  // by member
  std::uint64_t received_ = 0;
  std::uint64_t stable_ = 0;
  bool changed_ = false;
};

}  // namespace dunlin::multicast
