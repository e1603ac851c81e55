#include "multicast/restart.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace dunlin::multicast {
namespace {

using Reports = std::span<const LogReport>;

constexpr const char* kHowToGiveUp =
    "(dunlin multicast --log-given-up, MulticastOptions::log_given_up)";

[[nodiscard]] bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

[[nodiscard]] std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

[[nodiscard]] bool has(const LogReport& report, const LoggedView& view) {
  const bool older = report.views.empty() || view.place.number < report.views.front().place.number;
  return std::ranges::find(report.views, view) != report.views.end() ||
         (older && report.views.size() >= kMaxLoggedViews);
}

/// An empty log proves nothing: it may have been emptied, or be on a new disk.
[[nodiscard]] bool is_empty(const LogReport& report) noexcept { return report.views.empty(); }

/// Whether something may have been delivered in the view: then all its members have its record.
[[nodiscard]] bool was_in_all(const LoggedView& view, Reports reports) {
  return std::ranges::all_of(reports, [&](const LogReport& report) {
    return is_empty(report) || !has(view.members, report.member) || has(report, view);
  });
}

/// The last view of a log for which was_in_all() holds; null: there is none.
[[nodiscard]] const LoggedView* last_view_in_all(const LogReport& report, Reports reports) {
  for (auto view = report.views.rbegin(); view != report.views.rend(); ++view)
    if (was_in_all(*view, reports)) return &*view;
  return nullptr;
}

[[nodiscard]] bool is_given_up(const std::string& member, Reports reports) {
  return std::ranges::any_of(reports,
                             [&](const LogReport& report) { return has(report.given_up, member); });
}

/// Whether messages follow the view's record.
[[nodiscard]] bool has_messages(std::vector<LoggedView>::const_iterator view,
                                const LogReport& report) {
  const auto next = std::next(view);
  const std::uint64_t behind = next == report.views.end() ? report.end.number : next->place.number;
  return behind > view->place.number + 1;
}

/// Whether a report shows that `member` has had a log: a member of a view has stored all records
/// before that view, and the view's own record if anything happened in it.
[[nodiscard]] bool shows_a_log_of(const std::string& member, const LogReport& report) {
  for (auto view = report.views.begin(); view != report.views.end(); ++view)
    if (has(view->members, member) && (view->place.number > 1 || has_messages(view, report)))
      return true;
  return false;
}

[[nodiscard]] bool has_lost_its_log(const LogReport& suspect, Reports reports) {
  return is_empty(suspect) && std::ranges::any_of(reports, [&](const LogReport& report) {
           return shows_a_log_of(suspect.member, report);
         });
}

/// Members of a view whose logs no member has reported, and no operator has given up.
[[nodiscard]] std::string missing(const LoggedView& view, Reports reports) {
  std::string names;
  for (const std::string& member : view.members) {
    const auto shown = std::ranges::find(reports, member, &LogReport::member);
    const bool lost = shown != reports.end() && has_lost_its_log(*shown, reports);
    if ((shown != reports.end() && !lost) || is_given_up(member, reports)) continue;
    names += (names.empty() ? "'" : ", '") + member + (lost ? "' (here with an empty log)" : "'");
  }
  return names;
}

/// The members that must know of this log: a view after the last one that counts may count later.
[[nodiscard]] std::vector<std::string> heirs_of(const LogReport& source, const LoggedView& last) {
  std::vector<std::string> heirs = last.members;
  for (const LoggedView& view : source.views)
    if (view.place.number > last.place.number)
      std::erase_if(heirs, [&](const std::string& heir) { return !has(view.members, heir); });
  return heirs;
}

/// A member whose log is empty, and would tell which of two views that exclude each other began.
[[nodiscard]] std::string empty_in_dispute(const LogReport& source, const LoggedView& last,
                                           Reports reports) {
  for (const LogReport& report : reports)
    for (const LoggedView& view : report.views) {
      if (has(source, view) || !was_in_all(view, reports)) continue;
      for (const LogReport& empty : reports)
        if (is_empty(empty) && !is_given_up(empty.member, reports) &&
            (has(view.members, empty.member) || has(last.members, empty.member)))
          return empty.member;
    }
  return {};
}

/// All logs here are empty. Returns why that does not begin a new history: a member that was in the
/// subgroup before may have had the log. Empty if it does.
[[nodiscard]] std::string had_by_others(Reports reports) {
  if (std::ranges::none_of(reports, &Past::had_members, &LogReport::past)) return {};
  if (std::ranges::none_of(reports, &Past::saw_all, &LogReport::past))
    return "the members that had its log are gone, and those that are here have none; start one "
           "that has it, or all members anew";
  std::vector<std::string> absent;
  for (const LogReport& report : reports) {
    if (!report.past.saw_all) continue;
    for (const std::string& member : report.past.departed)
      if (!is_given_up(member, reports) && !has(absent, member)) absent.push_back(member);
  }
  if (absent.empty()) return {};
  return "the logs that are here are empty, and one of a member that is gone may not be (" +
         quoted(absent) + "): start all members anew; or, if its log is lost, say so " +
         kHowToGiveUp;
}

}  // namespace

LogChoice choose_log(Reports reports) {
  const auto rank = [&](const LogReport& report) {
    const LoggedView* view = last_view_in_all(report, reports);
    return std::tuple(report.live, view == nullptr ? 0 : view->number, report.end.number);
  };
  const auto best = std::ranges::max_element(reports, {}, rank);
  LogChoice choice{.source = static_cast<std::size_t>(best - reports.begin()), .refusal = {}};
  if (best->live) return choice;
  if (best->views.empty()) {
    choice.refusal = had_by_others(reports);
    return choice;
  }
  const LoggedView* last = last_view_in_all(*best, reports);
  if (last == nullptr) last = &best->views.front();  // the very first view, which never began
  choice.heirs = heirs_of(*best, *last);
  const std::string absent = missing(*last, reports);
  if (!absent.empty())
    choice.refusal = "the last view in the logs that are here, " + std::to_string(last->number) +
                     ", also had " + absent +
                     ", whose log may have more: start that member, too; or, if its log is lost, "
                     "say so " +
                     kHowToGiveUp;
  const std::string empty = empty_in_dispute(*best, *last, reports);
  if (choice.refusal.empty() && !empty.empty())
    choice.refusal = "the logs that are here end in different views, and the log of '" + empty +
                     "', which would tell which of them counts, is empty: restore it; or, if it is "
                     "lost, say so " +
                     kHowToGiveUp;
  return choice;
}

// --- by quorum -----------------------------------------------------------------------------------

namespace {

/// What all reports together say about the views that may have begun.
class QuorumView {
 public:
  explicit QuorumView(Reports reports) : reports_(reports) {
    for (const LogReport& report : reports)
      for (auto view = report.views.begin(); view != report.views.end(); ++view)
        if ((has_messages(view, report) || view->number == report.begun) &&
            (proved_ == nullptr || proved_->number < view->number))
          proved_ = &*view;
  }

  /// The last view of a log that may have begun (MC-Q2); none: null.
  [[nodiscard]] const LoggedView* last_of(const LogReport& report) const {
    for (auto view = report.views.rbegin(); view != report.views.rend(); ++view)
      if (may_have_begun(*view, report)) return &*view;
    return nullptr;
  }
  /// The first view of the chosen log that may have begun and has no quorum here; null: none.
  [[nodiscard]] const LoggedView* without_quorum(const LogReport& source) const {
    for (const LoggedView& view : source.views)
      if (may_have_begun(view, source) && !has_quorum(view)) return &view;
    return nullptr;
  }
  /// A view that excludes the chosen log's views, and may have begun instead; null: none.
  [[nodiscard]] const LoggedView* in_dispute(const LogReport& source) const {
    for (const LogReport& report : reports_)
      for (const LoggedView& view : report.views)
        if (!has(source, view) && may_have_begun(view, report)) return &view;
    return nullptr;
  }

 private:
  /// Views that began are one chain: so a later one's log has the last view that certainly began,
  /// and all its own members have its record.
  [[nodiscard]] bool may_have_begun(const LoggedView& view, const LogReport& report) const {
    if (proved_ != nullptr && (view.number < proved_->number || !has(report, *proved_)))
      return false;
    return was_in_all(view, reports_);
  }
  [[nodiscard]] bool has_quorum(const LoggedView& view) const {
    const auto counts = [&](const std::string& member) {
      const auto report = std::ranges::find(reports_, member, &LogReport::member);
      return is_given_up(member, reports_) ||
             (report != reports_.end() && !is_empty(*report) && has(*report, view));
    };
    const auto here = static_cast<std::size_t>(std::ranges::count_if(view.members, counts));
    return are_quorum(here, view.members.size(), counts(view.members.front())) ||
           missing(view, reports_).empty();
  }

  Reports reports_;
  const LoggedView* proved_ = nullptr;  // the last view that began for certain
};

}  // namespace

LogChoice choose_log_by_quorum(Reports reports) {
  const QuorumView views(reports);
  const auto rank = [&](const LogReport& report) {
    const LoggedView* last = views.last_of(report);
    return std::tuple(last == nullptr ? 0 : last->number, report.live, report.end.number);
  };
  const auto best = std::ranges::max_element(reports, {}, rank);
  const LoggedView* const last = views.last_of(*best);
  LogChoice choice{.source = static_cast<std::size_t>(best - reports.begin()), .refusal = {}};
  if (last == nullptr) {  // no view began: the other rule says whether this is the first one
    choice = choose_log(reports);
    choice.heirs.clear();
    choice.others_may_help = true;
    return choice;
  }
  if (const LoggedView* const other = views.in_dispute(*best))
    choice.refusal = "the logs that are here end in views " + std::to_string(last->number) + " (" +
                     quoted(last->members) + ") and " + std::to_string(other->number) + " (" +
                     quoted(other->members) +
                     "), of which one never began: start all members of one of them, too";
  else if (const LoggedView* const few = views.without_quorum(*best))
    choice.refusal = "no quorum of view " + std::to_string(few->number) + " (" +
                     quoted(few->members) +
                     ") is here with its logs: start more of these members; or, if logs are lost, "
                     "say so " +
                     kHowToGiveUp;
  choice.others_may_help = !choice.refusal.empty();
  for (const LogReport& report : reports)
    if (report.live && !has(report, *last) && choice.refusal.empty())
      choice.refusal = "'" + report.member + "' works with a log that is without view " +
                       std::to_string(last->number) + " of '" + best->member +
                       "': start all members anew";
  return choice;
}

std::uint64_t common_prefix_end(const LogReport& source, const LogReport& member,
                                const std::function<std::uint64_t(std::uint64_t)>& chain_before) {
  const auto shared = [&](const LogPlace& place) {
    if (place.number < source.first.number)  // the source has trimmed its record
      return std::ranges::find(source.views, place, &LoggedView::place) != source.views.end();
    return place.number <= source.end.number && chain_before(place.number) == place.chain;
  };
  if (shared(member.end)) return member.end.number;
  // All logs of the history have the records that were trimmed, because these had been delivered.
  const std::uint64_t least = shared(member.first) ? member.first.number : 1;
  for (auto view = member.views.rbegin(); view != member.views.rend(); ++view)
    if (shared(view->place)) return std::max(least, view->place.number);
  return least;
}

std::optional<std::uint64_t> copy_begin(
    const LogReport& source, const LogReport& member,
    const std::function<std::uint64_t(std::uint64_t)>& chain_before) {
  const std::uint64_t end = common_prefix_end(source, member, chain_before);
  return end < source.first.number ? std::nullopt : std::optional(end);
}

std::optional<std::uint64_t> other_history(const LogReport& source, const LogReport& member) {
  for (auto view = member.views.begin(); view != member.views.end(); ++view)
    if (has_messages(view, member) && !has(source, *view)) return view->place.number;
  return std::nullopt;
}

bool has_begun_view(const LogReport& report, std::uint64_t from) {
  for (auto view = report.views.begin(); view != report.views.end(); ++view)
    if (view->place.number >= from && has_messages(view, report)) return true;
  return false;
}

}  // namespace dunlin::multicast
