#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/multicast.hpp>

#include "multicast/deliverer.hpp"
#include "multicast/journal.hpp"
#include "multicast/log_agreement.hpp"

/// The log of a durable subgroup at one member, from view to view. In each view the members make
/// their logs equal, this one replays its messages once, and appends the view's record; then the
/// view's messages may be logged. docs/multicast.md ("The durable mode") says why (MC-L1 to MC-L8,
/// MC-Q1 to MC-Q4).
/// One thread at a time, that of the group.
namespace dunlin::multicast {

class DurableLog {
 public:
  /// Opens the log, or begins it. Throws Error.
  DurableLog(std::unique_ptr<Journal> journal, std::vector<std::string> given_up, LogTrim trim,
             bool by_quorum)
      : journal_(std::move(journal)),
        given_up_(std::move(given_up)),
        by_quorum_(by_quorum),
        trim_(trim) {}
  /// Waits for the writes under way.
  ~DurableLog();
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;

  /// `load_logged` takes the state that the log's snapshot holds, before the replay.
  void on_replay(ReplayUpcall upcall, Multicast::Load load_logged) {
    on_replay_ = std::move(upcall);
    load_logged_ = std::move(load_logged);
  }
  /// `load` takes that state if there is no `load_logged`.
  void on_state(Multicast::Load load) { load_ = std::move(load); }

  /// Says that the subgroup came at run time, and begins no new history before all these members
  /// are in it (MC-Q6). Only by quorum: it waits for members that have its log (MC-Q5).
  void wait_for(std::vector<std::string> founders) { founders_ = std::move(founders); }

  /// A view begins, or has ended. `names` are the subgroup's members.
  void begin(Fabric& fabric, const Subgroup& subgroup, std::vector<std::string> names);
  void end() noexcept;
  /// Does what is due before the view's messages may be logged. `delivered`: a message was
  /// delivered, so no member needs the agreement any more. Throws what the user's upcall throws.
  std::size_t poll(bool delivered);
  /// Whether the view has begun: its record is in all members' logs.
  [[nodiscard]] bool begun() const noexcept { return stage_ == Stage::begun; }
  /// Why this member cannot go on with its log: a sentence; empty as long as all is well.
  [[nodiscard]] const std::string& failure() const noexcept;
  /// Why only a view with further members can begin (MC-Q5); empty: this one can.
  [[nodiscard]] const std::string& why_waiting() const noexcept { return why_waiting_; }
  /// Whether any view has begun here, and all that the log held was handed up.
  [[nodiscard]] bool ever_begun() const noexcept { return ever_begun_; }
  /// Says that this member was given a state instead of the log's messages.
  void skip_replay() noexcept { replayed_all_ = true; }

  // --- trimming ----------------------------------------------------------------------------------
  /// Whether the log has grown enough for trim().
  [[nodiscard]] bool trim_is_due() const noexcept;
  [[nodiscard]] bool trims_by_state() const noexcept { return trim_.keeps_state; }
  /// Keeps in the log what a restart needs besides `state`, which has the `delivered` records of
  /// the view at hand. Without a state, gives up messages that are old enough at `now_ns`.
  void trim(const Deliverer::Delivered& delivered, std::optional<std::span<const std::byte>> state,
            std::uint64_t now_ns);

  /// Trims leave the records from that number on in the log.
  void keep_from(std::function<std::uint64_t()> first_record) {
    keep_from_ = std::move(first_record);
  }

  // --- numbers of records ------------------------------------------------------------------------
  /// The number of the first message of the last view that has been recorded.
  [[nodiscard]] std::uint64_t first_message() const noexcept { return first_message_; }
  [[nodiscard]] bool replaying() const noexcept { return replay_.has_value(); }
  [[nodiscard]] LogPosition replay_position() const { return replay_->position(); }

  [[nodiscard]] Journal& journal() noexcept { return *journal_; }
  [[nodiscard]] const Journal& journal() const noexcept { return *journal_; }

 private:
  /// The stages of the view at hand, which begin() begins and poll() goes through. By quorum,
  /// `appending` comes before `replaying` (MC-Q3).
  enum class Stage : std::uint8_t {
    equalizing,  // the members' logs are being made equal
    replaying,   // what this log holds is handed up, once
    appending,   // the view's record goes to all members' disks
    begun        // messages may be logged
  };

  [[nodiscard]] Past past_of(const Subgroup& subgroup);
  std::size_t equalize();
  std::size_t replay();
  [[nodiscard]] bool replay_some();
  void load_state();
  void record_view();
  std::size_t append();

  std::unique_ptr<Journal> journal_;
  std::vector<std::string> given_up_;
  const bool by_quorum_;
  std::vector<std::string> founders_;
  std::string refusal_;
  std::string why_waiting_;

  std::unique_ptr<LogAgreement> agreement_;  // as long as any member needs it
  Stage stage_ = Stage::equalizing;
  std::vector<std::string> names_;  // the view's members
  bool live_ = false;               // this log is as good as any
  std::uint64_t last_begun_ = 0;    // number of the last view in the log that began here
  bool ever_begun_ = false;
  bool awaits_state_ = false;  // a state comes instead of the replay

  std::set<std::string> seen_;  // the members seen before an agreement has ended here
  bool saw_first_ = false;      // seen_ began with the subgroup's first view

  ReplayUpcall on_replay_;
  std::optional<Replay> replay_;
  std::uint64_t replayed_ = 0;  // how many messages
  bool replayed_all_ = false;
  Multicast::Load load_;
  Multicast::Load load_logged_;
  bool loaded_ = false;

  /// Where the log may begin later.
  struct Beginning {
    std::uint64_t number = 0;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;  // how many the log had then
    std::uint64_t taken_ns = 0;
  };
  LogTrim trim_;
  std::function<std::uint64_t()> keep_from_;
  std::uint64_t first_message_ = 0;  // number of the record behind the present view's record
  std::uint64_t trimmed_at_ = 0;     // bytes of the journal at the last trim()
  std::deque<Beginning> beginnings_;
};

}  // namespace dunlin::multicast
