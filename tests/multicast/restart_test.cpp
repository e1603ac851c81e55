#include "multicast/restart.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/rounds.hpp"

namespace dunlin::multicast {
namespace {

using test::contains;

// --- the rules, one by one
// --------------------------------------------------------------------------

LogReport report(std::string member, std::vector<LoggedView> views, std::uint64_t next) {
  return {.member = std::move(member),
          .end = {.number = next, .chain = next * 10},
          .views = std::move(views)};
}
LoggedView view(std::uint64_t number, std::vector<std::string> members, std::uint64_t place) {
  return {.place = {place, place * 10}, .number = number, .members = std::move(members)};
}

TEST(Restart, BeginsWithEmptyLogs) {
  const std::vector<LogReport> reports = {report("a", {}, 1), report("b", {}, 1)};
  EXPECT_EQ(choose_log(reports).refusal, "");
}

TEST(Restart, BeginsWithEmptyLogsInALaterViewIfNobodyIsGone) {
  std::vector<LogReport> reports = {report("a", {}, 1), report("b", {}, 1), report("c", {}, 1)};
  for (LogReport& each : reports) each.past.had_members = true;
  EXPECT_TRUE(contains(choose_log(reports).refusal, "the members that had its log are gone"));
  reports[1].past.saw_all = true;
  EXPECT_EQ(choose_log(reports).refusal, "");
  reports[1].past.departed = {"d", "e"};
  EXPECT_TRUE(contains(choose_log(reports).refusal, "may not be ('d', 'e'): start all"));
  reports[0].given_up = {"d"};
  reports[2].given_up = {"e"};
  EXPECT_EQ(choose_log(reports).refusal, "");
}

TEST(Restart, TakesTheLongestLogOfTheLastView) {
  const LoggedView third = view(3, {"a", "b", "c"}, 40);
  const LoggedView fourth = view(4, {"b", "c"}, 60);
  const std::vector<LogReport> reports = {
      report("a", {third}, 90), report("b", {third, fourth}, 70), report("c", {third, fourth}, 75)};
  const LogChoice choice = choose_log(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 2);
}

TEST(Restart, WaitsForTheOthersOfTheLastView) {
  const LoggedView third = view(3, {"a", "b", "c", "d"}, 40);
  const LoggedView fourth = view(4, {"a", "b", "c"}, 60);
  std::vector<LogReport> reports = {report("a", {third, fourth}, 70)};
  EXPECT_TRUE(contains(choose_log(reports).refusal, "also had 'b', 'c', whose log may have more"));
  reports.push_back(report("b", {third, fourth}, 65));
  EXPECT_TRUE(contains(choose_log(reports).refusal, "also had 'c', whose log may have more"));
  reports[1].given_up = {"c"};
  EXPECT_EQ(choose_log(reports).refusal, "") << "c is lost, and d was gone before";
}

/// A member was alone in having begun it, so nothing was delivered in it; the others went on.
TEST(Restart, DoesNotCountAViewThatNotAllOfItsMembersHave) {
  const LoggedView third = view(3, {"b", "c"}, 40);
  const LoggedView vain = view(4, {"b", "c"}, 50);
  const LoggedView vainer = view(5, {"b", "c"}, 51);
  const LoggedView fourth = view(4, {"a", "c"}, 50);
  const std::vector<LogReport> reports = {report("a", {third, fourth}, 60),
                                          report("b", {third, vain, vainer}, 52),
                                          report("c", {third, fourth}, 58)};
  const LogChoice choice = choose_log(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 0);
}

TEST(Restart, BeginsAnewWhatIsBehindTheSourcesFirstRecord) {
  const auto chain = [](std::uint64_t number) { return number * 10; };
  const LoggedView last = view(3, {"a", "b"}, 40);
  LogReport source = report("a", {last}, 90);
  source.first = {.number = 60, .chain = 600};
  EXPECT_EQ(copy_begin(source, report("b", {last}, 70), chain), 70);
  EXPECT_EQ(copy_begin(source, report("b", {last}, 50), chain), std::nullopt);
  LogReport longer = report("b", {last}, 75);
  longer.end.chain = 1;  // it differs somewhere behind 65
  EXPECT_EQ(copy_begin(source, longer, chain), std::nullopt);
  longer.first = {.number = 65, .chain = 650};
  EXPECT_EQ(copy_begin(source, longer, chain), 65);
  EXPECT_EQ(copy_begin(source, report("b", {}, 1), chain), std::nullopt);
  EXPECT_EQ(other_history(source, report("b", {last}, 50)), std::nullopt);
  EXPECT_EQ(other_history(source, report("b", {view(2, {"b"}, 30)}, 50)), 30);
}

/// Somebody has emptied it, as one may who was told that it is damaged.
TEST(Restart, TakesAnEmptyLogForNoProofThatAViewNeverBegan) {
  const LoggedView third = view(3, {"a", "b"}, 40);
  const LoggedView fourth = view(4, {"b", "c"}, 60);
  std::vector<LogReport> reports = {report("a", {third}, 90), report("b", {third, fourth}, 70),
                                    report("c", {}, 1)};
  reports[2].given_up = {"c"};
  const LogChoice choice = choose_log(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 1) << "what was delivered in view 4 is not in the longer one";
}

TEST(Restart, WaitsForALogThatWasEmptied) {
  const LoggedView third = view(3, {"b", "c"}, 40);
  const LoggedView fourth = view(4, {"b", "c"}, 60);
  std::vector<LogReport> reports = {report("b", {third, fourth}, 70), report("c", {}, 1)};
  EXPECT_TRUE(
      contains(choose_log(reports).refusal, "also had 'c' (here with an empty log), whose"));
  reports[1].given_up = {"c"};
  EXPECT_EQ(choose_log(reports).refusal, "");
  EXPECT_EQ(choose_log(reports).source, 0);
}

/// A view's record comes after what was before it, and messages after the record, in all logs.
TEST(Restart, TakesNoLogForLostThatNeedNotHaveBegun) {
  const LoggedView first = view(1, {"a", "b"}, 1);
  const LoggedView second = view(2, {"b", "c"}, 2);
  EXPECT_EQ(choose_log(std::vector{report("a", {first}, 2), report("b", {}, 1)}).refusal, "");
  EXPECT_TRUE(contains(choose_log(std::vector{report("a", {first}, 3), report("b", {}, 1)}).refusal,
                       "'b' (here with an empty log)"));
  EXPECT_TRUE(
      contains(choose_log(std::vector{report("b", {first, second}, 3), report("c", {}, 1)}).refusal,
               "'c' (here with an empty log)"));
}

TEST(Restart, RefusesToGuessWhatAnEmptyLogWouldHaveTold) {
  const LoggedView vain = view(1, {"b", "c"}, 1);
  const LoggedView real = view(1, {"a", "c"}, 1);
  std::vector<LogReport> reports = {report("a", {real}, 2), report("b", {vain}, 2),
                                    report("c", {}, 1)};
  EXPECT_TRUE(contains(choose_log(reports).refusal, "the log of 'c', which would tell which"));
  reports[0].given_up = {"c"};
  EXPECT_EQ(choose_log(reports).refusal, "");
}

TEST(Restart, TakesTheLogOfWhoWentOnWhateverOthersHave) {
  std::vector<LogReport> reports = {report("a", {view(9, {"a", "b", "c"}, 80)}, 90),
                                    report("b", {view(4, {"b", "c"}, 60)}, 70)};
  reports[1].live = true;
  const LogChoice choice = choose_log(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 1);
}

TEST(Restart, KeepsWhatIsAlike) {
  const auto chain = [](std::uint64_t number) { return number * 10; };
  const LogReport source = report("a", {}, 70);
  LogReport other = report("b", {}, 60);
  EXPECT_EQ(common_prefix_end(source, other, chain), 60);
  other.end.chain = 1;
  EXPECT_EQ(common_prefix_end(source, other, chain), 1);
  other.views = {view(1, {}, 20), view(2, {}, 40), view(3, {}, 50)};
  other.views[2].place.chain = 7;
  EXPECT_EQ(common_prefix_end(source, other, chain), 40);
  other = report("b", {view(2, {}, 30)}, 80);  // longer than what counted
  EXPECT_EQ(common_prefix_end(source, other, chain), 30);
}

TEST(Restart, KnowsAViewThatHasMessages) {
  const LogReport log =
      report("a", {view(1, {"a"}, 1), view(2, {"a"}, 20), view(3, {"a"}, 21)}, 22);
  EXPECT_TRUE(has_begun_view(log, 1));
  EXPECT_FALSE(has_begun_view(log, 2)) << "views 2 and 3 have none";
  EXPECT_TRUE(has_begun_view(report("a", log.views, 23), 21));
}

// --- histories of crashes
// ---------------------------------------------------------------------------

/// A subgroup as the protocol has it, without a network: logs grow in one order, some faster than
/// others; views end; everything crashes, and some of it starts again.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed), members_(2 + draw(4)) {}

  void run() {
    for (std::uint32_t i = 0; i < members_.size(); ++i)
      members_[i].name = std::string(1, static_cast<char>('a' + i));
    for (int runs = 0; runs < 12; ++runs) {
      if (draw(6) == 0) lose_a_log();
      if (draw(30) == 0) lose_a_log_and_say_nothing();
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (runs == 0 || draw(5) != 0) here.push_back(i);
      // Members that have nothing begin a new history: so they never come alone.
      if (runs > 0 &&
          std::ranges::all_of(here, [&](std::size_t i) { return members_[i].log.empty(); }))
        continue;
      begin_group(here);
      if (draw(4) == 0) {
        seen_.insert(here.begin(), here.end());
        here = with_newcomers(survivors_of(here));
      }
      if (!start(here)) continue;
      ++started;
      for (std::uint64_t views = 1 + draw(4); views > 0 && !view_.empty(); --views) {
        work();
        if (testing::Test::HasFatalFailure() || view_.size() <= 1 || draw(3) == 0) break;
        end_view();
      }
    }
  }
  std::uint64_t started = 0;
  std::uint64_t delivered() const { return delivered_.size(); }
  std::uint64_t cuts = 0;
  std::uint64_t lost = 0;
  std::uint64_t vain = 0;
  std::uint64_t halves = 0;  // crashes while a log was copied beside another
  std::uint64_t anew = 0;    // copies of logs that had been trimmed

 private:
  struct Entry {
    std::uint64_t message;             // 0: a view
    std::vector<std::string> members;  // of that view
    std::uint64_t view;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  struct Member {
    std::string name;
    std::vector<Entry> log;
    std::uint64_t first = 1;  // the records before are gone; a snapshot stands for them
    bool live = false;
    bool saw_all = false;  // of the group at hand
    bool lost = false;     // and not whole again
    bool said = false;     // that it is lost
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  /// Of a member of the last view, if another one of it has what was delivered.
  void lose_a_log() {
    if (view_.size() < 2) return;
    const auto has_all = [&](std::size_t i) {
      std::size_t at = 0;
      for (const Entry& entry : members_[i].log)
        if (at < delivered_.size() && entry.message == delivered_[at]) ++at;
      return at == delivered_.size();
    };
    if (!std::ranges::all_of(view_, has_all)) return;
    Member& member = members_[view_[draw(view_.size())]];
    member.log.clear();
    member.first = 1;
    member.lost = member.said = true;
    ++lost;
  }
  /// Of any member. It may be the only one that has what was delivered: then nobody may go on.
  /// (Where the other logs have a first view and no more, they cannot tell whether it began.)
  void lose_a_log_and_say_nothing() {
    if (std::ranges::any_of(members_, [](const Member& each) { return each.log.size() < 2; }))
      return;
    Member& member = members_[draw(members_.size())];
    member.log.clear();
    member.first = 1;
    member.lost = true;
  }

  /// Stands for a chain: equal for equal logs.
  static std::uint64_t chain(const std::vector<Entry>& log, std::uint64_t number) {
    std::uint64_t sum = 7;
    for (std::uint64_t i = 0; i + 1 < number; ++i) {
      sum = (sum ^ log[i].message ^ (log[i].view << 40)) * 0x9E37'79B9'7F4A'7C15;
      for (const std::string& name : log[i].members)
        sum = (sum ^ static_cast<std::uint64_t>(name[0])) * 31;
    }
    return sum;
  }
  /// A group's first view; its members have not made their logs equal yet.
  void begin_group(const std::vector<std::size_t>& here) {
    seen_.clear();
    for (Member& member : members_) member.live = member.saw_all = false;
    for (const std::size_t i : here) members_[i].saw_all = true;
  }

  LogReport report_of(const Member& member, const std::vector<std::size_t>& here) const {
    const std::uint64_t next = member.log.size() + 1;
    LogReport report{
        .member = member.name, .live = member.live, .end = {next, chain(member.log, next)}};
    report.first = {.number = member.first, .chain = chain(member.log, member.first)};
    report.past = {.had_members = !seen_.empty(), .saw_all = member.saw_all};
    for (const std::size_t i : seen_)
      if (std::ranges::find(here, i) == here.end())
        report.past.departed.push_back(members_[i].name);
    for (std::uint64_t i = 0; i < member.log.size(); ++i) {
      if (member.log[i].message != 0) continue;
      report.views.push_back({.place = {i + 1, chain(member.log, i + 1)},
                              .number = member.log[i].view,
                              .members = member.log[i].members});
    }
    return report;
  }

  static std::uint64_t last_view(const std::vector<Entry>& log) {
    std::uint64_t last = 0;
    for (const Entry& entry : log) last = std::max(last, entry.view);
    return last;
  }

  /// A view of those begins; false if their logs do not suffice.
  bool start(const std::vector<std::size_t>& here) {
    std::vector<LogReport> reports;
    for (const std::size_t i : here) reports.push_back(report_of(members_[i], here));
    for (const Member& member : members_)  // said only when all that is left is here
      if (member.said && here.size() == members_.size())
        reports.front().given_up.push_back(member.name);
    seen_.insert(here.begin(), here.end());
    const LogChoice choice = choose_log(reports);
    if (!choice.refusal.empty()) return false;
    const std::vector<Entry> source = members_[here[choice.source]].log;
    view_ = here;
    Entry view{.message = 0, .members = {}, .view = last_view(source) + 1};
    for (const std::size_t i : here) view.members.push_back(members_[i].name);
    for (std::size_t k = 0; k < here.size(); ++k)
      if (!make_equal(members_[here[k]], reports[k], source, reports[choice.source])) return false;
    for (const std::string& heir : choice.heirs)
      for (const std::size_t i : here)
        if (members_[i].name == heir) members_[i].live = true;
    for (const std::size_t i : here) {
      if (draw(40) == 0) return false;
      if (draw(20) == 0) {  // some crash, or come, before all have begun
        ++vain;
        return start(with_newcomers(survivors_of(view_)));
      }
      members_[i].log.push_back(view);
    }
    for (const std::size_t i : here) members_[i].live = true;
    expect_all_delivered(source);
    order_.assign(members_[here[0]].log.begin(), members_[here[0]].log.end());
    return true;
  }

  /// False: all crash meanwhile.
  bool make_equal(Member& member, const LogReport& own, const std::vector<Entry>& source,
                  const LogReport& report) {
    const auto same = std::ranges::mismatch(member.log, source).in2 - source.begin();
    const std::optional<std::uint64_t> begin = copy_begin(report, own, [&](std::uint64_t number) {
      EXPECT_GE(number, report.first.number) << "its record is gone";
      return chain(source, number);
    });
    EXPECT_LE(begin.value_or(1), static_cast<std::uint64_t>(same) + 1);
    expect_one_history(member.log, source, own, same);
    cuts += static_cast<std::size_t>(same) < member.log.size() ? 1 : 0;
    if (!begin || member.log.empty()) {  // MC-L8: beside its own
      EXPECT_EQ(other_history(report, own), std::nullopt);
      for (std::size_t i = begin.value_or(report.first.number); i <= source.size(); ++i)
        if (draw(40) == 0) {
          ++halves;
          return false;
        }
      anew += begin ? 0 : 1;
      member.first = begin.value_or(report.first.number);
      member.log = source;
    } else {
      EXPECT_GE(*begin, member.first);
      member.log.resize(static_cast<std::size_t>(same));
      for (auto entry = source.begin() + same; entry != source.end(); ++entry) {
        if (draw(40) == 0) return false;
        member.log.push_back(*entry);
      }
    }
    member.lost = member.said = false;
    return true;
  }

  /// Nothing is cut off that must have counted (MC-L7).
  static void expect_one_history(const std::vector<Entry>& log, const std::vector<Entry>& source,
                                 const LogReport& report, std::ptrdiff_t same) {
    const auto at = static_cast<std::size_t>(same);
    EXPECT_FALSE(has_begun_view(report, at + 1));
    if (at < log.size() && at < source.size()) {
      EXPECT_TRUE(log[at].message == 0 || source[at].message == 0);
    }
  }
  void expect_all_delivered(const std::vector<Entry>& log) {
    std::size_t at = 0;
    for (const Entry& entry : log)
      if (at < delivered_.size() && entry.message == delivered_[at]) ++at;
    ASSERT_EQ(at, delivered_.size()) << "something that was delivered is not in the log";
  }

  /// Messages become stable, get into logs, and are delivered once they are in all.
  void work() {
    for (std::uint64_t steps = draw(60); steps > 0; --steps) {
      Member& member = members_[view_[draw(view_.size())]];
      if (member.log.size() == order_.size())
        order_.push_back({.message = ++last_message_, .members = {}, .view = 0});
      member.log.push_back(order_[member.log.size()]);
      deliver(shortest());
      if (draw(50) == 0)  // a part goes of what was delivered
        member.first = std::max(member.first, 1 + draw(shortest() + 1));
    }
  }
  std::uint64_t shortest() {
    std::uint64_t least = UINT64_MAX;
    for (const std::size_t i : view_)
      least = std::min<std::uint64_t>(least, members_[i].log.size());
    return least;
  }
  void deliver(std::uint64_t records) {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < records; ++i) {
      if (order_[i].message == 0) continue;
      if (at < delivered_.size() && delivered_[at] == order_[i].message) {
        ++at;
      } else if (at == delivered_.size()) {
        delivered_.push_back(order_[i].message);
        ++at;
      }
    }
  }
  /// Some crash; the others cut their logs at what all of them have, deliver it, and go on.
  void end_view() {
    view_ = survivors_of(view_);
    const std::uint64_t trim = shortest();
    deliver(trim);
    for (const std::size_t i : view_) members_[i].log.resize(trim);
    if (!start(with_newcomers(view_))) view_ = {};  // everything crashed
  }
  /// At least one.
  std::vector<std::size_t> survivors_of(const std::vector<std::size_t>& view) {
    std::vector<std::size_t> survivors;
    for (const std::size_t i : view)
      if (draw(4) != 0) survivors.push_back(i);
    if (survivors.empty()) survivors = {view[0]};
    for (const std::size_t i : view)
      if (std::ranges::find(survivors, i) == survivors.end())
        members_[i].live = members_[i].saw_all = false;
    return survivors;
  }
  /// Some come in, or come back.
  std::vector<std::size_t> with_newcomers(const std::vector<std::size_t>& survivors) {
    std::vector<std::size_t> next = survivors;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (std::ranges::find(survivors, i) == survivors.end() && draw(4) == 0) next.push_back(i);
    return next;
  }

  std::mt19937_64 random_;
  std::vector<Member> members_;
  std::vector<std::size_t> view_;
  std::set<std::size_t> seen_;  // members of the group's views
  std::vector<Entry> order_;    // the log that the view's members write
  std::vector<std::uint64_t> delivered_;
  std::uint64_t last_message_ = 0;
};

TEST(Restart, LosesNothingThatWasDeliveredInAnyHistory) {
  std::uint64_t started = 0;
  std::uint64_t delivered = 0;
  std::uint64_t cuts = 0;
  std::uint64_t lost = 0;
  std::uint64_t vain = 0;
  std::uint64_t halves = 0;
  std::uint64_t anew = 0;
  constexpr std::uint64_t kSeeds = test::rounds(3'000);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    history.run();
    ASSERT_FALSE(testing::Test::HasFailure());
    started += history.started;
    delivered += history.delivered();
    cuts += history.cuts;
    lost += history.lost;
    vain += history.vain;
    halves += history.halves;
    anew += history.anew;
  }
  EXPECT_GT(started, 2 * kSeeds);
  EXPECT_GT(delivered, 30 * kSeeds);
  EXPECT_GT(cuts, kSeeds / 10);
  EXPECT_GT(lost, kSeeds / 10);
  EXPECT_GT(vain, kSeeds / 2);
  EXPECT_GT(halves, kSeeds / 100);
  EXPECT_GT(anew, kSeeds / 100);
}

}  // namespace
}  // namespace dunlin::multicast
