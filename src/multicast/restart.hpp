#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Chooses the log with which a durable subgroup goes on, and the records of it that the others
/// need. Pure; docs/multicast.md ("The durable mode") says why nothing is lost that any member has
/// delivered.
namespace dunlin::multicast {

/// A report names at most so many views, the last ones.
inline constexpr std::size_t kMaxLoggedViews = 1'000;

/// A place in a log, given by the records before it.
struct LogPlace {
  std::uint64_t number = 1;  // the number of the next record
  std::uint64_t chain = 0;   // the chain of all records before it
  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

struct LoggedView {
  LogPlace place;  // where the view begins
  std::uint64_t number = 0;
  std::vector<std::string> members = {};  // the subgroup's members
  friend bool operator==(const LoggedView&, const LoggedView&) = default;
};

/// What a member knows of the subgroup before the present view, in this group. It counts founders
/// that are not here as members that it saw, because they may have a log (MC-Q6).
struct Past {
  bool had_members = false;
  bool saw_all = false;                    // it has been a member from the first view on
  std::vector<std::string> departed = {};  // those that it saw, and that are no members now
  friend bool operator==(const Past&, const Past&) = default;
};

/// A member's report of its log.
struct LogReport {
  std::string member;
  bool live = false;        // it has gone on from an earlier view, with this log
  std::uint64_t begun = 0;  // number of the last view that this member saw begin; 0: none
  LogPlace end;
  LogPlace first = {};                     // the log's oldest record
  std::vector<LoggedView> views = {};      // ascending; perhaps without the oldest
  std::vector<std::string> given_up = {};  // members whose logs are lost, as the operator says
  Past past = {};                          // empty for a live member
  friend bool operator==(const LogReport&, const LogReport&) = default;
};

struct LogChoice {
  std::size_t source = 0;
  std::string refusal;           // why no log can be chosen: a sentence; empty if one is
  bool others_may_help = false;  // with further members here, a log may be chosen
  /// The members that may go on with that log also if the present view never begins (MC-L5).
  std::vector<std::string> heirs = {};
};
/// Members that have equal reports choose the same log.
[[nodiscard]] LogChoice choose_log(std::span<const LogReport> reports);
/// Chooses where each view has a quorum of the view before (MC-Q1 to MC-Q4).
[[nodiscard]] LogChoice choose_log_by_quorum(std::span<const LogReport> reports);

/// Whether `some` of a view's members are a quorum: more than half, or half with the first.
[[nodiscard]] constexpr bool are_quorum(std::size_t some, std::size_t all,
                                        bool has_first) noexcept {
  return 2 * some > all || (2 * some == all && has_first);
}

/// The first record that a member needs of the source instead of its own; none: the source lacks
/// some of these records, so the member begins anew with the source's snapshot. `chain_before`
/// gives the chains of the source's log, for numbers from its first to its end.
[[nodiscard]] std::optional<std::uint64_t> copy_begin(
    const LogReport& source, const LogReport& member,
    const std::function<std::uint64_t(std::uint64_t)>& chain_before);

/// How far a member's log is known to equal the source's, from the places that both reports name;
/// 1: perhaps not at all.
[[nodiscard]] std::uint64_t common_prefix_end(
    const LogReport& source, const LogReport& member,
    const std::function<std::uint64_t(std::uint64_t)>& chain_before);

/// The first record of a member's view with messages that the source's log lacks, though that goes
/// further: so it has another history (MC-L7). None: there is no such view.
[[nodiscard]] std::optional<std::uint64_t> other_history(const LogReport& source,
                                                         const LogReport& member);

/// Whether a view of this log, from this record on, has messages: then that view began (MC-L1), and
/// a log that lacks it has another history (MC-L7).
[[nodiscard]] bool has_begun_view(const LogReport& report, std::uint64_t from);

}  // namespace dunlin::multicast
