#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "multicast/row.hpp"
#include "multicast/view_memory.hpp"

/// A view's first stage: learns from rows (MC-B3) which messages this member and, as far as it
/// knows, the others have received, and so which messages are stable.
namespace dunlin::multicast {

class Receipts {
 public:
  Receipts(ViewMemory& memory, Counters& counters);

  struct News {
    std::size_t done = 0;
    bool ordered_slots = false;  // others may wait for nulls of this member
  };
  News poll() noexcept;
  /// Says that this member has announced its own slots, and so has received them.
  void announced(std::uint64_t slots, std::uint64_t real) noexcept;

  // --- by sender ---------------------------------------------------------------------------------
  /// How many slots each sender is known to have taken.
  [[nodiscard]] std::span<const std::uint64_t> taken() const noexcept { return taken_; }
  /// How many of these it has taken up to its last record: slots from there on are nulls.
  [[nodiscard]] std::span<const std::uint64_t> real() const noexcept { return real_; }

  // --- sequence numbers --------------------------------------------------------------------------
  /// The lowest sequence number that this member has not received.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// The lowest sequence number that another member is not known to have received.
  [[nodiscard]] std::uint64_t received_by(std::size_t member) const noexcept {
    return others_received_[member];
  }
  /// As of the last find_stable(), all members have received all messages below this (MC-O3).
  [[nodiscard]] std::uint64_t stable() const noexcept { return stable_; }
  void find_stable() noexcept;

  // --- whether any of this has changed -----------------------------------------------------------
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  void note_change() noexcept { changed_ = true; }
  /// Whether anything has changed since the last call.
  [[nodiscard]] bool take_change() noexcept { return std::exchange(changed_, false); }

  // --- payload that came in a row (MC-B6) --------------------------------------------------------
  [[nodiscard]] bool keeps_inlined(std::size_t sender_rank) const noexcept {
    return inlined_[sender_rank].kept;
  }
  /// Copies the payload into this member's copy of the ring, which may have to be fetched from
  /// another core: so receipts go out first.
  void store_inlined(std::size_t sender_rank) noexcept;

 private:
  struct Inlined {
    std::uint64_t which = 0;
    bool kept = false;  // the words are here only, and not in the ring yet
    std::array<std::uint64_t, row::kMaxInlinedWords> words = {};
  };

  bool note_slots(const ViewMemory& memory, std::size_t sender_rank) noexcept;
  void note_receipts(const ViewMemory& memory) noexcept;
  void keep_inlined(std::size_t sender_rank, std::size_t member) noexcept;

  ViewMemory& memory_;
  Counters& counters_;
  const std::size_t own_;                       // own sender rank, or the number of senders
  std::vector<std::uint64_t> taken_;            // by sender
  std::vector<std::uint64_t> real_;             // by sender
  std::vector<Inlined> inlined_;                // by sender
  std::vector<std::uint64_t> others_received_;  // by member
  std::uint64_t received_ = 0;
  std::uint64_t stable_ = 0;
  bool changed_ = false;
};

}  // namespace dunlin::multicast
