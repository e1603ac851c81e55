#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/group.hpp>

#include "multicast/journal.hpp"
#include "multicast/restart.hpp"
#include "multicast/subgroup_view.hpp"

/// At the beginning of a view, the members of a durable subgroup make their logs equal: each
/// reports its own, and all choose the same one (restart.hpp). Its owner sends the others the
/// records that they lack, and each reports when these are on its disk (MC-L6). Then each appends
/// the view's record, and work may begin once all have reported that it is on their disks, too
/// (MC-L1). They use an ordered multicast of their own, in which all send. All progress is made in
/// poll().
///
/// All members receive the same messages in the same order. A message that does not belong to the
/// present stage, or that repeats a report of its sender, comes from a corrupt peer and is ignored.
namespace dunlin::multicast {

class LogAgreement {
 public:
  struct Member {
    std::vector<std::string> names;     // the subgroup's members
    bool live = false;                  // this member has gone on from an earlier view
    std::uint64_t begun = 0;            // the last view in the log that it saw begin; 0: none
    bool by_quorum = false;             // a quorum of the last view's logs suffices (MC-Q1)
    bool may_wait = false;              // further members can come into the subgroup (MC-Q5)
    std::vector<std::string> given_up;  // members whose logs are lost
    Past past = {};
  };
  LogAgreement(Fabric& fabric, const Subgroup& subgroup, Journal& journal, Member member);

  std::size_t poll();
  /// Why no log can be chosen: a sentence; empty as long as all is well.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// Why no log can be chosen before a view with further members (MC-Q5); empty: one can.
  [[nodiscard]] const std::string& why_waiting() const noexcept { return why_waiting_; }
  /// Whether all have stored the log that was chosen.
  [[nodiscard]] bool equal() const noexcept { return stage_ >= Stage::equal; }
  /// Whether this member may go on with the chosen log also if the view never begins.
  [[nodiscard]] bool inherits() const noexcept { return inherits_; }
  /// To be called when the view's record has been appended here. Requires equal().
  void appended() noexcept;
  /// Whether all have stored the view's record.
  [[nodiscard]] bool begun() const noexcept { return stage_ == Stage::begun; }
  /// The number of the last view in the chosen log.
  [[nodiscard]] std::uint64_t last_view() const noexcept { return last_view_; }

  // --- the messages ------------------------------------------------------------------------------
  enum class Kind : std::uint32_t {
    report = 1,
    plan = 2,
    record = 3,
    end = 4,
    stored = 5,
    begun = 6,
    snapshot = 7  // a part of a snapshot
  };
  /// The view of the multicast by which the members of that subgroup talk.
  [[nodiscard]] static SubgroupViewOptions channel_of(const Subgroup& subgroup);

 private:
  /// advance() goes from each stage to the next.
  enum class Stage : std::uint8_t {
    reporting,  // this member has yet to send its report
    comparing,  // it waits for all reports, and chooses a source
    planning,   // it waits for the source's plan
    copying,    // it waits for the source's records
    storing,    // it waits until all members that lacked records have stored them
    equal,      // the logs are equal; it waits until all have stored the view's record
    begun
  };
  /// The state of a member's log, once there is a plan.
  enum class MemberLog : std::uint8_t { lacks_records, equal, begun };

  void advance() noexcept;
  bool send_report();
  bool send_records();
  void prepare_next();
  bool announce_if_settled();
  void take(std::uint32_t sender, std::span<const std::byte> message);
  void take_report(std::uint32_t sender, std::span<const std::byte> message);
  void take_plan(std::span<const std::byte> message);
  void prepare_for_records(const LogReport& source);
  void take_record(std::span<const std::byte> message);
  void take_snapshot(std::span<const std::byte> message);
  void take_end();
  void take_stored(std::uint32_t sender);
  void take_begun(std::uint32_t sender);
  [[nodiscard]] bool all_are(MemberLog log) const noexcept;
  void choose();
  void make_plan();
  void keep_before(std::uint64_t number);
  [[noreturn]] void refuse_to_cut(std::uint64_t number) const;

  Journal& journal_;
  std::string name_;
  Member member_;
  std::uint32_t me_;
  Stage stage_ = Stage::reporting;
  std::string refusal_;
  std::string why_waiting_;
  std::vector<std::optional<LogReport>> reports_;  // by member
  std::vector<MemberLog> logs_;                    // by member

  // The log that was chosen:
  std::uint32_t source_ = 0;
  std::uint64_t last_view_ = 0;
  bool inherits_ = false;

  // What the source sends; at the other members, what has come from it:
  std::vector<std::byte> to_send_;         // the plan, and then record by record
  std::optional<log::Snapshot> snapshot_;  // at a member that begins anew: received so far
  std::size_t snapshot_sent_ = 0;
  std::unique_ptr<JournalReader> reader_;

  // At the other members:
  std::uint64_t from_ = 0;               // the first record that this member may lack
  bool begins_anew_ = false;             // it awaits the source's snapshot
  bool copies_ = false;                  // it stores records in a copy beside its log (MC-L8)
  std::unique_ptr<JournalReader> ours_;  // from `from_` on, as long as the source's are equal

  std::optional<Kind> to_announce_;  // to be sent once everything is on this member's disk
  SubgroupView view_;
};

}  // namespace dunlin::multicast
