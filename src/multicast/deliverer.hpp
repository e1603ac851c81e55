#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dunlin/multicast.hpp>

#include "multicast/known.hpp"
#include "multicast/lifecycle.hpp"
#include "multicast/long_messages.hpp"
#include "multicast/receipts.hpp"
#include "multicast/ring.hpp"
#include "multicast/row_publisher.hpp"
#include "multicast/statistics.hpp"
#include "multicast/view_memory.hpp"

/// A view's third stage: gathers a batch of messages that may be delivered, in place, and hands it
/// up, to the upcall or to the caller of next(). Then the messages' records are free. Once the view
/// is over, it delivers what the trim covers.
namespace dunlin::multicast {

class LogStage;

class Deliverer {
 public:
  /// `log` is null but in the durable mode; `upcall` may be empty.
  Deliverer(ViewMemory& memory, Receipts& receipts, const LogStage* log, RowPublisher& publisher,
            Statistics& statistics, const Lifecycle& lifecycle, Upcall upcall);

  /// Delivers a batch, if there is an upcall. Returns how much was done.
  std::size_t poll();
  /// Delivers the next message, if there is no upcall. It is valid until the next call.
  [[nodiscard]] std::optional<Delivery> next();
  /// While held, delivers nothing.
  void hold(bool held) noexcept { held_ = held; }
  /// Lets next() find messages one by one, so that all are handed up whenever its caller pauses.
  void find_one_by_one(bool does) noexcept { one_by_one_ = does; }
  /// Whether the upcall runs.
  [[nodiscard]] bool in_upcall() const noexcept { return batch_.state == BatchState::in_upcall; }

  // --- what was handed up ------------------------------------------------------------------------
  /// How many slots of each sender are behind what was handed up; none while next() has found
  /// messages and not returned all.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> handed_up() const;
  /// How many slots of one sender are behind what was handed up or found by next(); and the
  /// fragments of long messages among them.
  [[nodiscard]] Known passed(std::size_t sender_rank) const;
  /// How many messages of each sender were delivered beyond the trim.
  [[nodiscard]] std::vector<std::uint64_t> ahead_of(std::span<const std::uint64_t> trim) const;
  /// Cursors behind what was handed up, by sender.
  [[nodiscard]] std::vector<RingCursor> cursors() const;

  /// Records of all senders, in the one order. Requires handed_up().
  struct Delivered {
    std::uint64_t records = 0;
    std::uint64_t complete = 0;  // the records before the first one of an incomplete message
  };
  [[nodiscard]] Delivered delivered_records() const noexcept;

  // --- the view's end ----------------------------------------------------------------------------
  /// Looks at the records received last. Messages that next() has found and not returned stay.
  void stop() noexcept;
  /// Once the view is over: hands up all that the trim still covers, if there is an upcall.
  void deliver_rest(std::span<const std::uint64_t> trim);
  /// Instead of that: next() returns what it has found already, and nothing behind it (MC-Q2).
  void deliver_no_more();

 private:
  struct Source {
    RingCursor cursor;
    std::uint64_t next_slot = kNoSlot;  // the slot of the record at the cursor
    std::uint32_t member = 0;
    Reassembly reassembly = {};
    std::uint64_t began_at = 0;  // records of all senders before an incomplete message
  };
  /// A batch is gathered, and handed up in one of two ways; settle() makes it empty again.
  enum class BatchState : std::uint8_t {
    gathering,
    in_upcall,  // until the upcall returns, or throws
    handed_out  // by next(), one by one
  };
  struct Batch {
    BatchState state = BatchState::gathering;
    std::vector<Delivery> messages;
    std::size_t size = 0;
    std::size_t handed = 0;  // how many of these next() has returned
    std::size_t bytes = 0;
    bool fragments = false;  // some record was a part of a long message
  };
  class InUpcall;

  void look_ahead() noexcept;
  bool gather(std::size_t most);
  bool gather_for_next();
  void gather_in_order(std::size_t most);
  void gather_any(std::size_t most);
  void gather_rest(std::size_t most);
  [[nodiscard]] std::uint64_t nearest_record() const noexcept;
  [[nodiscard]] std::uint64_t records_passed() const noexcept;
  bool take(std::size_t sender_rank);
  bool take_fragment(std::size_t sender_rank, const Record& record);
  [[nodiscard]] bool full(std::size_t most) const noexcept;
  void settle() noexcept;
  void free_records(std::size_t sender_rank) noexcept;
  void empty_batch() noexcept;

  ViewMemory& memory_;
  Receipts& receipts_;
  const LogStage* log_;
  RowPublisher& publisher_;
  Statistics& statistics_;
  const Lifecycle& lifecycle_;
  const Upcall upcall_;
  const SenderRank own_;
  const bool ordered_;
  const std::size_t most_bytes_;     // in a batch
  const std::size_t found_at_once_;  // by next(); 1 with a log, as each message names its records

  std::vector<Source> sources_;  // by sender
  Batch batch_;
  std::uint64_t deliverable_ = 0;      // everything below this number may be delivered
  std::uint64_t round_ = 0;            // the slot of the next number to deliver,
  std::size_t next_sender_ = 0;        // and that number's sender
  std::uint64_t delivered_ = 0;        // the lowest number that was not handed up
  std::size_t first_sender_rank_ = 0;  // unordered: the sender that comes first in the next batch
  std::vector<std::uint64_t> trim_;    // known once the view is over
  bool held_ = false;
  bool one_by_one_ = false;
};

}  // namespace dunlin::multicast
