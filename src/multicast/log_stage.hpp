#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "multicast/receipts.hpp"
#include "multicast/ring.hpp"
#include "multicast/view_memory.hpp"

/// The stage that only durable views have, between sending and delivering: messages that all
/// members have received go into this member's log, and are deliverable once they are in all logs
/// (MC-B5, MC-O7).
namespace dunlin::multicast {

class Journal;

class LogStage {
 public:
  LogStage(ViewMemory& memory, Receipts& receipts);

  /// Reads in the others' rows how far their logs are.
  void note_others() noexcept;
  /// Asks the disk how far the own log is. Returns whether there was news.
  std::size_t note_own();
  /// Appends what has become stable, in the order of sequence numbers: so members' logs are equal
  /// as far as they go. Returns how much was done.
  std::size_t append_stable();

  /// The lowest sequence number that is not on the disk in the own log,
  [[nodiscard]] std::uint64_t persisted() const noexcept { return persisted_; }
  /// and how many slots of each sender are below it.
  [[nodiscard]] std::span<const std::uint64_t> persisted_slots() const noexcept {
    return persisted_slots_;
  }
  /// Whether others, which know only of `published`, may wait to hear of persisted().
  [[nodiscard]] bool worth_publishing(std::uint64_t published) const noexcept;
  /// Below this sequence number, every message is in the logs of all members.
  [[nodiscard]] std::uint64_t deliverable() const noexcept;

  /// The view has ended: takes out of the log what the trim does not cover. `delivered`: for each
  /// sender, a cursor that is not beyond the trim.
  void cut(std::span<const std::uint64_t> trim, std::span<const RingCursor> delivered) noexcept;

 private:
  struct Source {
    RingCursor cursor;  // behind the last record that was appended
    std::uint64_t next_slot = kNoSlot;
  };
  struct Next {
    std::size_t sender_rank = 0;
    std::uint64_t number = kNoSlot;
  };
  struct Committing {
    std::uint64_t records = 0;  // once the log has so many records,
    std::uint64_t number = 0;   // it has everything below this number
  };

  [[nodiscard]] Next next_to_append() noexcept;

  ViewMemory& memory_;
  Receipts& receipts_;
  Journal& journal_;
  std::vector<Source> sources_;  // by sender
  std::uint64_t logged_ = 0;     // everything below this number has been appended
  Committing committing_;
  std::uint64_t persisted_ = 0;
  std::vector<std::uint64_t> persisted_slots_;   // by sender
  std::vector<std::uint64_t> others_persisted_;  // by member
};

}  // namespace dunlin::multicast
