#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "multicast/lifecycle.hpp"
#include "multicast/long_messages.hpp"
#include "multicast/receipts.hpp"
#include "multicast/ring.hpp"
#include "multicast/row_publisher.hpp"
#include "multicast/statistics.hpp"
#include "multicast/view_memory.hpp"

/// A view's second stage: makes records of messages in this member's own ring, puts them to all
/// peers up to a goal, and only then announces that goal (MC-B1). Idle if this is no sender.
namespace dunlin::multicast {

class Sender {
 public:
  Sender(ViewMemory& memory, Receipts& receipts, RowPublisher& publisher, Statistics& statistics,
         const Lifecycle& lifecycle);

  // --- what the user asks for: SubgroupView has the contracts ------------------------------------
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept;
  void commit() noexcept;
  [[nodiscard]] SendResult send(std::span<const std::byte> message);
  [[nodiscard]] bool has_room(std::size_t bytes) noexcept;

  // --- the stage ---------------------------------------------------------------------------------
  /// Takes the slots that others wait for as nulls.
  void take_nulls() noexcept;
  /// Whether slots were taken that have not been announced.
  [[nodiscard]] bool has_to_announce() const noexcept {
    return writer_.taken() != announced_.taken;
  }
  /// Whether a long message is not in records yet.
  [[nodiscard]] bool has_to_feed() const noexcept { return long_.feeding(); }
  /// Sends records. True: it has announced them in the own row, which must be pushed.
  bool poll() noexcept;
  /// Whether a full queue has kept poll() from announcing. No event tells when it has room again.
  [[nodiscard]] bool refused() const noexcept {
    return own_ && goal_.taken != announced_.taken && memory_.rings_connected();
  }

  /// Whether each other live member has what was sent so far, and will deliver it also if this one
  /// ends now. In an unordered view they have delivered it, and are asked to say so.
  [[nodiscard]] bool handed_over() noexcept;

  /// The own messages that the trim does not cover, in order.
  [[nodiscard]] std::vector<std::vector<std::byte>> uncovered(std::uint64_t trim) const;

 private:
  struct Goal {
    std::uint64_t head = 0;
    std::uint64_t real = 0;
    std::uint64_t taken = 0;
    std::uint64_t records = 0;
  };

  [[nodiscard]] SendResult send_long(std::span<const std::byte> message);
  [[nodiscard]] std::byte* prepare_record(std::size_t bytes) noexcept;
  void reclaim() noexcept;
  void feed() noexcept;
  void choose_goal() noexcept;
  [[nodiscard]] bool may_inline() const noexcept;
  bool inline_payload() noexcept;
  bool post_records() noexcept;
  bool post_to(std::size_t member) noexcept;
  void announce() noexcept;
  [[nodiscard]] bool has_all(std::size_t member) const noexcept;

  ViewMemory& memory_;
  Receipts& receipts_;
  RowPublisher& publisher_;
  Statistics& statistics_;
  const Lifecycle& lifecycle_;
  const SenderRank own_;
  const RingShape ring_;
  RingWriter writer_;
  RingCursor posting_;  // at the first record beyond the goal
  Goal goal_;           // posted to some peers, or to all
  Goal announced_;
  std::vector<std::uint64_t> posted_;  // by member: position up to which it has the records
  // A member that has received all below this number has what was inlined last.
  std::uint64_t inlined_below_ = 0;
  SentLong long_;
  std::uint64_t silent_since_ = 0;    // the slot behind the last record, as nulls were taken last
  std::uint64_t nulls_in_a_row_ = 0;  // how often since then
};

}  // namespace dunlin::multicast
