#include "multicast/restart.hpp"

#include <algorithm>
#include <tuple>

namespace dunlin::multicast {
namespace {

using Reports = std::span<const LogReport>;

[[nodiscard]] bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

[[nodiscard]] bool has(const LogReport& report, const LoggedView& view) {
  const bool older = report.views.empty() || view.place.number < report.views.front().place.number;
  return std::ranges::find(report.views, view) != report.views.end() ||
         (older && report.views.size() >= kMaxLoggedViews);
}

/// Whether something may have been delivered in it: then all its members have its record.
[[nodiscard]] bool was_in_all(const LoggedView& view, Reports reports) {
  return std::ranges::all_of(reports, [&](const LogReport& report) {
    return !has(view.members, report.member) || has(report, view);
  });
}

/// The last such view of a log; none: null.
[[nodiscard]] const LoggedView* last_view_in_all(const LogReport& report, Reports reports) {
  for (auto view = report.views.rbegin(); view != report.views.rend(); ++view)
    if (was_in_all(*view, reports)) return &*view;
  return nullptr;
}

/// Members of a view whose logs nobody has shown, and that nobody has given up.
[[nodiscard]] std::string missing(const LoggedView& view, Reports reports) {
  std::string names;
  for (const std::string& member : view.members) {
    const bool known = std::ranges::any_of(reports, [&](const LogReport& report) {
      return report.member == member || has(report.given_up, member);
    });
    if (!known) names += (names.empty() ? "'" : ", '") + member + "'";
  }
  return names;
}

}  // namespace

LogChoice choose_log(Reports reports) {
  const auto rank = [&](const LogReport& report) {
    const LoggedView* view = last_view_in_all(report, reports);
    return std::tuple(report.live, view == nullptr ? 0 : view->number, report.end.number);
  };
  const auto best = std::ranges::max_element(reports, {}, rank);
  LogChoice choice{.source = static_cast<std::size_t>(best - reports.begin()), .refusal = {}};
  if (best->live || best->views.empty()) return choice;
  const LoggedView* last = last_view_in_all(*best, reports);
  if (last == nullptr) last = &best->views.front();  // the very first one, in vain
  const std::string absent = missing(*last, reports);
  if (!absent.empty())
    choice.refusal = "the last view in the logs that are here, " + std::to_string(last->number) +
                     ", also had " + absent +
                     ", whose log may have more: start that member, too; or, if its log is lost, "
                     "say so (log_given_up)";
  return choice;
}

std::uint64_t common_part(const LogReport& source, const LogReport& member,
                          const std::function<std::uint64_t(std::uint64_t)>& chain_before) {
  const auto shared = [&](const LogPlace& place) {
    return place.number <= source.end.number && chain_before(place.number) == place.chain;
  };
  if (shared(member.end)) return member.end.number;
  for (auto view = member.views.rbegin(); view != member.views.rend(); ++view)
    if (shared(view->place)) return view->place.number;
  return 1;
}

}  // namespace dunlin::multicast
