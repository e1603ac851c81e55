#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/table.hpp>

#include "multicast/known.hpp"
#include "multicast/long_messages.hpp"
#include "multicast/ring.hpp"
#include "multicast/row.hpp"

/// One subgroup in one view: its senders' messages, delivered by every member, in one order.
/// docs/multicast.md gives what is promised (MC-O1 to MC-O6) and why it holds (MC-B1 to MC-B6). One
/// thread at a time, that of the fabric; all progress is made in poll().
///
///     SubgroupView view(fabric, {.name = "log", .generation = 1, .members = {0, 1, 2}, .senders =
///     {0, 1}},
///                 [](std::span<const Delivery> batch) { for (const Delivery& d : batch) ...; });
///     if (const auto room = view.prepare(5); room.data() != nullptr) {
///       std::memcpy(room.data(), "hello", 5);
///       view.commit();
///     }
///     while (...) view.poll();
///     view.wedge();                             // the view ends: say what was received, agree,
///     const auto remains = view.finish(trim);   // deliver the rest, and send `again` in the next
namespace dunlin::multicast {

class Journal;

struct SubgroupViewOptions {
  std::string name;                    // of the subgroup; names region and table
  std::uint64_t generation = 0;        // the view's number; 0: the how-many-th of this name here
  std::vector<Rank> members;           // ranks of the fabric, in the view's order
  std::vector<std::uint32_t> senders;  // indices into members, ascending
  Mode mode = Mode::ordered;
  std::size_t ring_bytes = std::size_t{1} << 20;  // of each sender; a power of two
  std::uint32_t window_messages = 0;  // own records not yet delivered everywhere; 0: any number
  Switches switches = {};
  Journal* journal = nullptr;  // of the durable mode, which needs one; outlives the view
};

class SubgroupView {
 public:
  /// Set-up; throws Error. Does not wait for the peers. `fabric` must outlive it.
  SubgroupView(Fabric& fabric, SubgroupViewOptions options, Upcall upcall = {});
  ~SubgroupView();
  SubgroupView(const SubgroupView&) = delete;
  SubgroupView& operator=(const SubgroupView&) = delete;

  // --- sending -----------------------------------------------------------------------------------
  /// Where to build a message. Its data() is null if there is no room now, and always for more than
  /// largest_in_place(), for who is no sender, and once wedged. A later call replaces it.
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept;
  /// The prepared message is sent.
  void commit() noexcept;
  /// Copies, and splits what is larger. Throws Error for a message of more than kMaxCastBytes.
  [[nodiscard]] SendResult send(std::span<const std::byte> message);
  /// Whether this member is one of the senders.
  [[nodiscard]] bool sends() const noexcept { return own_sender_rank_.has_value(); }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return shape_.most_message_bytes();
  }

  // --- progress ----------------------------------------------------------------------------------
  /// Fabric, table, receive, send, deliver. Returns how much was done; 0 means that polling again
  /// is pointless until something arrives or is sent.
  std::size_t poll();
  /// Delivery without upcall: the next message, which is valid until the next call.
  [[nodiscard]] std::optional<Delivery> next();
  /// Receives, and delivers nothing, until told otherwise.
  void hold(bool held) noexcept {
    held_ = held;
    rested_ = false;
  }
  /// How many slots of each sender are behind what was handed up; none while next() has found a
  /// message and not returned it.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> handed_up() const;
  /// Likewise of one sender, and what next() has found besides; and the parts of long messages
  /// among them.
  [[nodiscard]] Known passed(std::size_t sender_rank) const {
    const auto& fragments = sources_[sender_rank].reassembly.unfinished_slots();
    const auto known = static_cast<std::ptrdiff_t>(std::min(fragments.size(), kMaxKnownFragments));
    return {.slots = sources_[sender_rank].cursor.slots(),
            .fragments = {fragments.end() - known, fragments.end()}};
  }
  [[nodiscard]] bool connected() const noexcept { return rings_connected_ && table_->connected(); }
  /// Throws Error if a peer made another view of this name.
  void check() const;
  /// Whether the first member did: then it is for us to go.
  [[nodiscard]] bool differs_from_first() const noexcept { return differs_from_first_; }

  // --- the view's end ----------------------------------------------------------------------------
  void wedge() noexcept { wedged_ = true; }
  /// Turns received, by sender; final once wedged.
  /// In the durable mode only what is in the log here counts.
  [[nodiscard]] std::span<const std::uint64_t> received() const noexcept {
    return durable() ? persisted_slots_ : taken_;
  }
  struct Remains {
    /// Own messages that the trim does not cover, in order: the first to send in the next view.
    std::vector<std::vector<std::byte>> again;
    /// Unordered: how many messages of each sender were delivered here beyond the trim, and must
    /// be passed over when they come again.
    std::vector<std::uint64_t> ahead;
  };
  /// Delivers the rest (without upcall: next() does), at most received() of each sender. Nothing
  /// can be sent any more.
  Remains finish(std::span<const std::uint64_t> trim);

  /// Whether finish() has been called.
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] const TableCore& table() const noexcept { return *table_; }
  [[nodiscard]] const SubgroupViewOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  using SenderRank = std::optional<std::size_t>;  // which sender a member is, if any
  class Batching;

  // subgroup_view.cpp
  void check_options() const;
  void make_table();
  void handle(const Event& event);
  void connect_rings() noexcept;
  [[nodiscard]] bool ordered() const noexcept { return options_.mode != Mode::unordered; }
  [[nodiscard]] bool durable() const noexcept { return options_.mode == Mode::durable; }
  [[nodiscard]] RingShape ring_of(std::size_t sender_rank) const noexcept;
  [[nodiscard]] const std::uint64_t& column(std::size_t member, std::size_t offset) const noexcept {
    return *reinterpret_cast<const std::uint64_t*>(table_->row(member) + offset);
  }
  [[nodiscard]] std::uint64_t seen(std::size_t member, std::size_t offset) const noexcept {
    return memory::load(column(member, offset));
  }
  void publish_word(std::size_t offset, std::uint64_t value) noexcept;
  void spend(std::size_t entries, std::size_t upcalls) noexcept;
  [[nodiscard]] bool has_to_send() const noexcept;
  // statistics.cpp
  void time_own() noexcept;
  void note_own() noexcept;
  void note_no_room() noexcept;
  void note_room() noexcept;
  [[nodiscard]] std::uint64_t without_room_ns() const noexcept;
  void publish_statistics() noexcept;
  // sending.cpp
  void reclaim() noexcept;
  void feed() noexcept;
  std::size_t send_stage() noexcept;
  void choose_goal() noexcept;
  bool inline_payload() noexcept;
  bool post_records() noexcept;
  bool post_to(std::size_t member) noexcept;
  bool announce() noexcept;
  std::size_t publish(bool announced) noexcept;
  void push(std::size_t offset, std::size_t bytes) noexcept;
  void push_consumed() noexcept;
  // receiving.cpp
  std::size_t receive_stage() noexcept;
  bool note_slots(std::size_t sender_rank) noexcept;
  void take_inlined(std::size_t sender_rank) noexcept;
  void put_inlined(std::size_t sender_rank) noexcept;
  void find_stable() noexcept;
  // logging.cpp
  std::size_t note_persisted();
  [[nodiscard]] bool must_publish_persisted() const noexcept;
  std::size_t log_stage();
  void find_persisted() noexcept;
  void cut_log(std::span<const std::uint64_t> trim) noexcept;
  // delivering.cpp
  void look_ahead() noexcept;
  std::size_t deliver_stage();
  bool gather(std::size_t most);
  bool gather_for_next();
  void gather_in_order(std::size_t most);
  void gather_any(std::size_t most);
  void gather_rest(std::size_t most);
  [[nodiscard]] std::uint64_t nearest_record() const noexcept;
  bool take(std::size_t sender_rank);
  bool take_fragment(std::size_t sender_rank, const Record& record);
  [[nodiscard]] bool full(std::size_t most) const noexcept;
  void settle() noexcept;
  [[nodiscard]] bool freed_enough(std::size_t sender_rank) const noexcept;
  [[nodiscard]] std::vector<std::vector<std::byte>> uncovered(std::uint64_t trim) const;

  Fabric& fabric_;
  const SubgroupViewOptions options_;
  const Upcall upcall_;
  std::size_t me_ = 0;                      // index into members
  SenderRank own_sender_rank_;              // our own, if we are a sender
  std::vector<SenderRank> sender_rank_of_;  // by member
  RingShape shape_;                         // without memory
  Region rings_;
  Subscription subscription_;
  std::unique_ptr<TableCore> table_;
  std::string refusal_;
  bool differs_from_first_ = false;
  bool rings_connected_ = false;
  bool wedged_ = false;
  bool over_ = false;
  bool polling_ = false;
  bool held_ = false;
  bool rested_ = false;  // nothing was done when the stages were last passed

  // Sending. Records are put to all peers up to a goal before it is announced (MC-B1).
  struct Goal {
    std::uint64_t head = 0;
    std::uint64_t real = 0;
    std::uint64_t taken = 0;
    std::uint64_t records = 0;
  };
  RingWriter writer_;
  RingCursor posting_;  // at the first record beyond the goal
  Goal goal_;           // posted to some peers, or to all
  Goal announced_;
  std::vector<std::uint64_t> posted_;  // by member: position up to which it has the records
  std::uint64_t inlined_below_ = 0;    // who has all below this number has what was carried last
  bool inlines_ = false;               // the next line does
  SentLong long_;

  // Receiving, by sender.
  std::vector<std::uint64_t> taken_;  // slots, as received() says
  std::vector<std::uint64_t> real_;
  std::vector<std::uint64_t> others_received_;  // by member
  std::uint64_t received_ = 0;                  // the lowest number that we have not
  std::uint64_t published_received_ = 0;
  std::uint64_t stable_ = 0;       // below it all members have every message,
  std::uint64_t deliverable_ = 0;  // and below it all may be delivered
  bool changed_ = false;           // of these, since they were found

  // Logging: what is stable, by sender; and how far the logs are.
  struct ToLog {
    RingCursor cursor;
    std::uint64_t next_slot = kNoSlot;
  };
  struct Committing {
    std::uint64_t records = 0;  // once the log has so many,
    std::uint64_t number = 0;   // everything below this number is in it
  };
  Journal* journal_ = nullptr;
  std::vector<ToLog> logging_;
  std::uint64_t logged_ = 0;
  Committing committing_;
  std::uint64_t persisted_ = 0;
  std::uint64_t published_persisted_ = 0;
  std::vector<std::uint64_t> persisted_slots_;   // by sender
  std::vector<std::uint64_t> others_persisted_;  // by member

  // Delivering, by sender.
  struct Freed {
    std::uint64_t position = 0;
    std::uint64_t records = 0;
  };
  struct Inlined {  // by a line, and taken from it
    std::uint64_t which = 0;
    bool kept = false;  // here only
    std::array<std::uint64_t, row::kMaxInlinedWords> words = {};
  };
  struct Source {
    RingCursor cursor;
    std::uint64_t next_slot = kNoSlot;  // of the record at the cursor
    std::uint32_t member = 0;
    Inlined inlined = {};
    Reassembly reassembly = {};
    Freed freed = {};            // what nobody reads any more here, and
    Freed published_freed = {};  // how much of it the sender knows
  };
  std::vector<Source> sources_;
  bool must_publish_freed_ = false;
  std::uint64_t round_ = 0;      // of the next number to deliver,
  std::size_t next_sender_ = 0;  // and whose it is
  std::uint64_t delivered_ = 0;
  std::vector<std::uint64_t> trim_;
  std::vector<Delivery> batch_;
  std::size_t batched_ = 0;
  bool handed_ = false;  // to who called next()
  std::size_t batched_bytes_ = 0;
  std::size_t first_sender_rank_ = 0;  // unordered: who comes first in the next batch
  bool fragments_ = false;             // records of several a message were taken

  // For observers: an own message now and then is timed, one after the other.
  struct Timed {
    bool due = true;
    std::uint64_t since_ns = 0;  // 0: none is under way
    std::uint64_t slot = 0;
    std::uint64_t last_ns = 0;
    std::uint64_t count = 0;
  };
  Timed timed_;
  std::uint64_t no_room_since_ns_ = 0;  // 0: the last attempt had room
  std::uint64_t no_room_ns_ = 0;
  std::uint32_t until_statistics_ = 1;  // polls that find something

  Counters counters_;
};

}  // namespace dunlin::multicast
