#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/restart.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Histories of crashes, drawn from seeds: what was delivered is in every log that is chosen later.
namespace dunlin::multicast {
namespace {

/// A subgroup as the protocol has it, without a network: logs grow in one order, some faster than
/// others; views end; everything crashes, and some of it starts again.
class History {
 public:
  explicit History(std::uint64_t seed, bool by_quorum = false)
      : random_(seed), by_quorum_(by_quorum), members_(2 + draw(4)) {}

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
  /// How often a view was begun without some member of the last one in the log.
  std::uint64_t without_some() const { return without_some_; }

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
    std::uint64_t begun = 0;  // the last view that it saw begin, while it is live
    bool saw_all = false;     // of the group at hand
    bool lost = false;        // and not whole again
    bool said = false;        // that it is lost
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
    LogReport report{.member = member.name,
                     .live = member.live,
                     .begun = member.live ? member.begun : 0,
                     .end = {next, chain(member.log, next)}};
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
    const LogChoice choice = by_quorum_ ? choose_log_by_quorum(reports) : choose_log(reports);
    if (!choice.refusal.empty()) return false;
    for (const Entry& entry : members_[here[choice.source]].log)
      if (entry.message == 0 && !std::ranges::all_of(entry.members, [&](const std::string& name) {
            return std::ranges::any_of(here,
                                       [&](std::size_t i) { return members_[i].name == name; });
          }))
        without_some_ += entry.view == last_view(members_[here[choice.source]].log) ? 1 : 0;
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
    for (const std::size_t i : here) members_[i].begun = view.view;
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
    const std::vector<std::size_t> before = view_;
    view_ = survivors_of(view_);
    const std::uint64_t trim = shortest();
    if (!by_quorum_ || are_quorum(view_, before)) deliver(trim);  // MC-Q2
    for (const std::size_t i : view_) members_[i].log.resize(trim);
    if (!start(with_newcomers(view_))) view_ = {};  // everything crashed
  }
  static bool are_quorum(const std::vector<std::size_t>& some,
                         const std::vector<std::size_t>& view) {
    return 2 * some.size() > view.size() ||
           (2 * some.size() == view.size() && some.front() == view.front());
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
  bool by_quorum_;
  std::vector<Member> members_;
  std::vector<std::size_t> view_;
  std::set<std::size_t> seen_;  // members of the group's views
  std::vector<Entry> order_;    // the log that the view's members write
  std::vector<std::uint64_t> delivered_;
  std::uint64_t last_message_ = 0;
  std::uint64_t without_some_ = 0;
};

TEST(RestartHistoriesByQuorum, LoseNothingThatWasDeliveredInAnyHistory) {
  std::uint64_t started = 0;
  std::uint64_t delivered = 0;
  std::uint64_t without_some = 0;
  const std::uint64_t kSeeds = test::rounds(3'000);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
    History history(seed, true);
    history.run();
    ASSERT_FALSE(testing::Test::HasFailure());
    started += history.started;
    delivered += history.delivered();
    without_some += history.without_some();
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(started, 2 * kSeeds);
  EXPECT_GT(delivered, 30 * kSeeds);
  EXPECT_GT(without_some, kSeeds / 2);
}

TEST(RestartHistories, LoseNothingThatWasDeliveredInAnyHistory) {
  std::uint64_t started = 0;
  std::uint64_t delivered = 0;
  std::uint64_t cuts = 0;
  std::uint64_t lost = 0;
  std::uint64_t vain = 0;
  std::uint64_t halves = 0;
  std::uint64_t anew = 0;
  const std::uint64_t kSeeds = test::rounds(3'000);
  const test::Seeds seeds(kSeeds);
  test::for_each_seed(seeds, [&](std::uint64_t seed) {
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
  });
  if (!seeds.are_usual) return;
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
