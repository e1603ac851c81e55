#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/deliverer.hpp"
#include "multicast/lifecycle.hpp"
#include "multicast/log_stage.hpp"
#include "multicast/receipts.hpp"
#include "multicast/row_publisher.hpp"
#include "multicast/sender.hpp"
#include "multicast/statistics.hpp"
#include "multicast/view_memory.hpp"
#include "multicast/view_options.hpp"

/// One subgroup in one view: its senders' messages, delivered by every member, in one order.
/// docs/multicast.md gives what is promised (MC-O1 to MC-O6) and why it holds (MC-B1 to MC-B7). One
/// thread at a time, that of the fabric; all progress is made in poll().
///
///     SubgroupView view(
///         fabric, {.name = "log", .generation = 1, .members = {0, 1, 2}, .senders = {0, 1}},
///         [](std::span<const Delivery> batch) { for (const Delivery& d : batch) ...; });
///     if (const auto room = view.prepare(5); room.data() != nullptr) {
///       std::memcpy(room.data(), "hello", 5);
///       view.commit();
///     }
///     while (...) view.poll();
///     view.wedge();                             // the view ends: say what was received, agree,
///     const auto remains = view.finish(trim);   // deliver the rest, and send `again` in the next
///
/// It has its memory, and a class for each stage of poll(); each of these needs only those that are
/// declared before it.
namespace dunlin::multicast {

class SubgroupView {
 public:
  /// Throws Error. Does not wait for the peers. `fabric` must outlive the view.
  SubgroupView(Fabric& fabric, SubgroupViewOptions options, Upcall upcall = {});
  SubgroupView(const SubgroupView&) = delete;
  SubgroupView& operator=(const SubgroupView&) = delete;

  // --- sending -----------------------------------------------------------------------------------
  /// Where to build a message. Its data() is null if there is no room now, and always for more than
  /// largest_in_place(), if this member is no sender, and once wedged. A later call replaces it.
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    return sender_.prepare(bytes);
  }
  void commit() noexcept { sender_.commit(); }
  /// Copies the message, and splits it if it does not fit in place. Throws Error for a message of
  /// more than kMaxCastBytes.
  [[nodiscard]] SendResult send(std::span<const std::byte> message) {
    return sender_.send(message);
  }
  /// Whether send() would take a message of so many bytes.
  [[nodiscard]] bool has_room(std::size_t bytes) noexcept { return sender_.has_room(bytes); }
  /// Whether this member is one of the senders.
  [[nodiscard]] bool sends() const noexcept { return memory_.own_sender_rank().has_value(); }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return memory_.shape().most_message_bytes();
  }

  // --- progress ----------------------------------------------------------------------------------
  /// Polls the fabric and the table, then receives, sends and delivers. Returns how much was done;
  /// 0 means that polling again is pointless until something arrives or is sent.
  std::size_t poll();
  /// Delivers the next message, if there is no upcall; valid until the next call.
  [[nodiscard]] std::optional<Delivery> next() { return deliverer_.next(); }
  /// While held, receives but delivers nothing.
  void hold(bool held) noexcept {
    deliverer_.hold(held);
    rested_ = false;
  }
  /// Lets next() find messages one by one, so that all are handed up whenever its caller pauses.
  void find_one_by_one(bool does) noexcept { deliverer_.find_one_by_one(does); }
  /// How many slots of each sender are behind what was handed up; none while next() has found
  /// messages and not returned all.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> handed_up() const {
    return deliverer_.handed_up();
  }
  /// How many slots of one sender are behind what was handed up or found by next(); and the
  /// fragments of long messages among them.
  [[nodiscard]] Known passed(std::size_t sender_rank) const {
    return deliverer_.passed(sender_rank);
  }
  /// How many records of the one order were handed up. Requires handed_up().
  [[nodiscard]] Deliverer::Delivered delivered_records() const noexcept {
    return deliverer_.delivered_records();
  }
  /// Whether each other live member has what was sent here, and will deliver it also if this one
  /// ends now; poll() until then.
  [[nodiscard]] bool handed_over() noexcept { return sender_.handed_over(); }
  [[nodiscard]] bool connected() const noexcept { return memory_.connected(); }
  /// Throws Error if a peer made another view of this name.
  void check() const { memory_.check(); }
  /// Whether the first member made another view of this name: then this member has to go.
  [[nodiscard]] bool differs_from_first() const noexcept { return memory_.differs_from_first(); }

  // --- the view's end ----------------------------------------------------------------------------
  void wedge() noexcept { lifecycle_.wedge(); }
  /// Slots received, by sender; final once wedged. In the durable mode, those in the own log.
  [[nodiscard]] std::span<const std::uint64_t> received() const noexcept {
    return log_ ? log_->persisted_slots() : receipts_.taken();
  }
  struct Remains {
    /// Own messages that the trim does not cover, in order: the first to send in the next view.
    std::vector<std::vector<std::byte>> again;
    /// Unordered: how many messages of each sender were delivered here beyond the trim, and must be
    /// passed over when they come again.
    std::vector<std::uint64_t> ahead;
  };
  /// What happens to the messages that the trim covers and that were not delivered yet.
  enum class Rest : std::uint8_t { deliver, withhold };
  /// Delivers the rest (without upcall: next() does), at most received() of each sender. Nothing
  /// can be sent any more.
  Remains finish(std::span<const std::uint64_t> trim, Rest rest = Rest::deliver);

  /// Whether neither wedge() nor finish() has been called.
  [[nodiscard]] bool open() const noexcept { return lifecycle_.open(); }
  /// Whether finish() has been called.
  [[nodiscard]] bool over() const noexcept { return lifecycle_.over(); }
  [[nodiscard]] Fabric& fabric() const noexcept { return memory_.fabric(); }
  [[nodiscard]] const TableCore& table() const noexcept { return memory_.table(); }
  [[nodiscard]] const SubgroupViewOptions& options() const noexcept { return memory_.options(); }
  [[nodiscard]] const Counters& counters() const noexcept { return statistics_.counters; }

 private:
  [[nodiscard]] bool has_to_send() const noexcept;
  [[nodiscard]] bool covers_what_all_have(std::span<const std::uint64_t> trim) const noexcept;

  Lifecycle lifecycle_;
  ViewMemory memory_;
  Statistics statistics_;
  Receipts receipts_;
  std::optional<LogStage> log_;  // in the durable mode
  RowPublisher publisher_;
  Sender sender_;
  Deliverer deliverer_;
  bool rested_ = false;  // the stages had nothing to do the last time
};

}  // namespace dunlin::multicast
