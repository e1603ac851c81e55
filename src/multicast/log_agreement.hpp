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
/// reports its own, all choose the same one (restart.hpp), and its owner sends the others what they
/// lack; they say when it is on their disks (MC-L6). Then each appends the view's record, and work
/// may begin once all have said that it is on their disks, too (MC-L1). They talk by an ordered
/// multicast of their own, in which all send. All progress is made in poll().
namespace dunlin::multicast {

class LogAgreement {
 public:
  struct Member {
    std::vector<std::string> names;     // of the subgroup's members
    bool live = false;                  // we have gone on from an earlier view
    std::vector<std::string> given_up;  // whose logs are lost
    Past past = {};
  };
  LogAgreement(Fabric& fabric, const Subgroup& subgroup, Journal& journal, Member member);

  std::size_t poll();
  /// Why no log can be chosen: a sentence; empty as long as all is well.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// Whether all have stored the log that was chosen.
  [[nodiscard]] bool equal() const noexcept { return ended_ && to_store_ == 0; }
  /// Whether we may go on with that log also if the view never begins.
  [[nodiscard]] bool inherits() const noexcept { return inherits_; }
  /// The view's record has been appended here.
  void appended() noexcept { must_begin_ = true; }
  /// Whether all have stored that.
  [[nodiscard]] bool begun() const noexcept { return to_begin_ == 0; }
  /// Number of the last view in the log that was chosen.
  [[nodiscard]] std::uint64_t last_view() const noexcept { return last_view_; }

 private:
  enum class Kind : std::uint32_t {
    report = 1,
    plan = 2,
    record = 3,
    end = 4,
    stored = 5,
    begun = 6
  };

  bool send_report();
  void take(std::uint32_t sender, std::span<const std::byte> message);
  void take_report(std::uint32_t sender, std::span<const std::byte> message);
  void take_plan(std::span<const std::byte> message);
  void choose();
  void make_plan();
  bool send_records();
  void take_record(std::span<const std::byte> message);
  void take_end();
  bool send_if_settled(Kind kind, bool& wanted);
  void keep_before(std::uint64_t number);
  [[noreturn]] void refuse_to_cut(std::uint64_t number) const;

  Journal& journal_;
  std::string name_;
  Member member_;
  std::uint32_t me_;
  std::vector<std::optional<LogReport>> reports_;  // by member
  std::size_t reported_ = 0;
  bool report_sent_ = false;  // our own
  bool chosen_ = false;       // a source
  bool inherits_ = false;
  std::string refusal_;
  std::uint32_t source_ = 0;
  std::uint64_t last_view_ = 0;
  std::uint64_t from_ = 0;               // the first record that we may lack
  std::unique_ptr<JournalReader> ours_;  // from there on, as long as it is what comes
  std::vector<std::byte> to_send_;       // the plan, and then record by record
  std::unique_ptr<JournalReader> reader_;
  bool ended_ = false;        // all records have come
  bool must_store_ = false;   // those that we lacked, and say so
  std::size_t to_store_ = 0;  // members that have not said so yet
  bool must_begin_ = false;   // likewise with the view's record
  std::size_t to_begin_;
  SubgroupView view_;
};

}  // namespace dunlin::multicast
