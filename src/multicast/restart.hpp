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

/// A report names no more views than these, the last ones.
inline constexpr std::size_t kMaxLoggedViews = 1'000;

/// A place in a log, given by the records before it.
struct LogPlace {
  std::uint64_t number = 1;  // of the record that comes next
  std::uint64_t chain = 0;   // over all before it
  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

struct LoggedView {
  LogPlace place;  // where it begins
  std::uint64_t number = 0;
  std::vector<std::string> members = {};  // of the subgroup
  friend bool operator==(const LoggedView&, const LoggedView&) = default;
};

/// A member's knowledge of the subgroup before the present view, in this group. Founders that are
/// not here count as members that it saw: they may have a log (MC-Q6).
struct Past {
  bool had_members = false;
  bool saw_all = false;                    // it has been a member from the first view on
  std::vector<std::string> departed = {};  // members that it saw, and that are none now
  friend bool operator==(const Past&, const Past&) = default;
};

/// A member reports this of its log.
struct LogReport {
  std::string member;
  bool live = false;        // it has gone on from an earlier view, with this log
  std::uint64_t begun = 0;  // number of the last view that this member saw begin; 0: none
  LogPlace end;
  LogPlace first = {};                     // the oldest record that is there
  std::vector<LoggedView> views = {};      // ascending; perhaps without the oldest
  std::vector<std::string> given_up = {};  // the operator says that their logs are lost
  Past past = {};                          // unless it is live
  friend bool operator==(const LogReport&, const LogReport&) = default;
};

struct LogChoice {
  std::size_t source = 0;
  std::string refusal;           // why none can be chosen: a sentence; empty if all is well
  bool others_may_help = false;  // with further members here, one may be chosen
  /// The members that may go on with that log also if the present view never begins (MC-L5).
  std::vector<std::string> heirs = {};
};
/// All that have the same reports choose the same.
[[nodiscard]] LogChoice choose_log(std::span<const LogReport> reports);
/// The same where each view has a quorum of the view before (MC-Q1 to MC-Q4): not all members of
/// the last view are needed.
[[nodiscard]] LogChoice choose_log_by_quorum(std::span<const LogReport> reports);

/// Whether so many of a view's members are a quorum of it: more than half, or half with the first.
[[nodiscard]] constexpr bool are_quorum(std::size_t some, std::size_t all,
                                        bool has_first) noexcept {
  return 2 * some > all || (2 * some == all && has_first);
}

/// From which record on a member needs those of the source instead of its own; none: the source has
/// not all of these any more, so the member begins anew with the source's snapshot. `chain_before`:
/// of the source's log, for numbers from its first to its end.
[[nodiscard]] std::optional<std::uint64_t> copy_begin(
    const LogReport& source, const LogReport& member,
    const std::function<std::uint64_t(std::uint64_t)>& chain_before);

/// How far a member's log is known to be like the source's, from the places that both reports name;
/// 1: perhaps not at all.
[[nodiscard]] std::uint64_t common_prefix_end(
    const LogReport& source, const LogReport& member,
    const std::function<std::uint64_t(std::uint64_t)>& chain_before);

/// The first record of a view with messages that the source's log is without, though it goes
/// further: so it has another history (MC-L7). None: there is no such view.
[[nodiscard]] std::optional<std::uint64_t> other_history(const LogReport& source,
                                                         const LogReport& member);

/// Whether a view of this log, from this record on, has messages: then it began (MC-L1), and a log
/// that is without it has another history (MC-L7).
[[nodiscard]] bool has_begun_view(const LogReport& report, std::uint64_t from);

}  // namespace dunlin::multicast
