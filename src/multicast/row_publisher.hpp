#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "multicast/receipts.hpp"
#include "multicast/ring.hpp"
#include "multicast/view_memory.hpp"

/// Decides when a member pushes its row, and to which peers: in one push of the hot line it
/// announces what it sent, acknowledges what it received, and frees what it delivered.
namespace dunlin::multicast {

class LogStage;

class RowPublisher {
 public:
  /// `log` is null but in the durable mode.
  RowPublisher(ViewMemory& memory, const Receipts& receipts, const LogStage* log,
               Counters& counters);

  /// Says that the row has the payload of the records that are announced next (MC-B6).
  void carry_payload() noexcept { carries_payload_ = true; }

  // --- what is free of a sender's ring -----------------------------------------------------------
  /// Frees the records before the cursor. Returns how many were not free before.
  std::uint64_t free_before(std::size_t sender_rank, const RingCursor& cursor) noexcept {
    Freed& freed = freed_[sender_rank].now;
    const std::uint64_t records = cursor.records() - freed.records;
    if (records != 0) freed = {.position = cursor.position(), .records = cursor.records()};
    return records;
  }
  /// Whether the freed part is worth a write: it is an eighth of the ring, or of the window.
  [[nodiscard]] bool freed_enough(std::size_t sender_rank) const noexcept;
  void must_publish_freed() noexcept { must_publish_freed_ = true; }
  [[nodiscard]] bool has_to_publish() const noexcept { return must_publish_freed_ || must_ask_; }
  /// Whether others may wait for receipts that have not been published.
  [[nodiscard]] bool owes_receipts() const noexcept {
    return memory_.ordered() && worth_publishing();
  }

  // --- unordered: nobody waits for receipts, so others give them only if they are asked ----------
  /// Asks others to say soon that they have what is before this position of this member's ring.
  void ask(std::uint64_t position) noexcept;
  /// Reads what others ask for.
  void note_asked() noexcept;

  /// Pushes what others may wait for; `announces`: new own slots, too. Returns whether it pushed.
  bool publish(bool announces) noexcept;

 private:
  struct Freed {
    std::uint64_t position = 0;
    std::uint64_t records = 0;
  };
  struct FreedOfSender {
    Freed now;
    Freed published;  // as far as the sender knows
  };

  [[nodiscard]] bool worth_publishing() const noexcept;
  bool publish_unordered(bool announces) noexcept;
  void push_consumed() noexcept;
  void push_one_line() noexcept;
  void push_each_column(bool announces) noexcept;
  void push(std::size_t offset, std::size_t bytes) noexcept;

  ViewMemory& memory_;
  const Receipts& receipts_;
  const LogStage* log_;
  Counters& counters_;
  std::vector<FreedOfSender> freed_;  // by sender
  std::vector<std::uint64_t> asked_;  // by sender
  bool must_publish_freed_ = false;
  bool must_ask_ = false;
  std::uint64_t asks_ = 0;
  bool carries_payload_ = false;
  std::uint64_t published_received_ = 0;
  std::uint64_t published_persisted_ = 0;
};

}  // namespace dunlin::multicast
