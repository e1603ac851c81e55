#include "multicast/restart.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace dunlin::multicast {
namespace {

using test::contains;

// --- the rules, one by one -----------------------------------------------------------------------

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

/// MC-L2 chooses the longest log of the last view.
TEST(Restart, TakesTheLongestLogOfTheLastView) {
  const LoggedView third = view(3, {"a", "b", "c"}, 40);
  const LoggedView fourth = view(4, {"b", "c"}, 60);
  const std::vector<LogReport> reports = {
      report("a", {third}, 90), report("b", {third, fourth}, 70), report("c", {third, fourth}, 75)};
  const LogChoice choice = choose_log(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 2);
}

/// MC-L3 demands the logs of all members of the last view.
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

/// By MC-L5 a member that went on without having stopped has everything.
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

// --- by quorum -----------------------------------------------------------------------------------

std::string refusal_by_quorum(const std::vector<LogReport>& reports) {
  return choose_log_by_quorum(reports).refusal;
}

TEST(RestartByQuorum, NeedsMoreThanHalfOfTheLastViewOrHalfWithTheFirst) {
  const LoggedView of_three = view(3, {"a", "b", "c"}, 40);
  const LoggedView of_two = view(4, {"b", "a"}, 60);
  EXPECT_EQ(refusal_by_quorum({report("b", {of_three}, 70), report("c", {of_three}, 65)}), "");
  EXPECT_TRUE(contains(refusal_by_quorum({report("b", {of_three}, 70)}),
                       "no quorum of view 3 ('a', 'b', 'c') is here with its logs"));
  EXPECT_EQ(refusal_by_quorum({report("b", {of_three, of_two}, 70)}), "");
  EXPECT_TRUE(contains(refusal_by_quorum({report("a", {of_three, of_two}, 70)}),
                       "no quorum of view 4 ('b', 'a')"));
}

/// By MC-Q1 an empty log does not count, unless an operator has given it up.
TEST(RestartByQuorum, CountsNoEmptyLogUnlessItIsGivenUp) {
  const LoggedView last = view(3, {"a", "b", "c"}, 40);
  std::vector<LogReport> reports = {report("a", {last}, 70), report("b", {}, 1)};
  EXPECT_TRUE(contains(refusal_by_quorum(reports), "no quorum of view 3"));
  reports[0].given_up = {"b"};
  EXPECT_EQ(refusal_by_quorum(reports), "");
  reports = {report("a", {last}, 70), report("b", {}, 1), report("c", {last}, 75)};
  const LogChoice choice = choose_log_by_quorum(reports);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.source, 2U);
}

/// MC-Q3: the last view may never have begun, and another one in its place.
TEST(RestartByQuorum, NeedsAQuorumOfEachViewThatMayBeTheLast) {
  const LoggedView third = view(3, {"a", "b", "c"}, 40);
  const LoggedView fourth = view(4, {"a", "b"}, 60);
  EXPECT_TRUE(contains(refusal_by_quorum({report("a", {third, fourth}, 61)}),
                       "no quorum of view 3 ('a', 'b', 'c')"));
  EXPECT_EQ(refusal_by_quorum({report("a", {third, fourth}, 62)}), "") << "it has a message";
}

TEST(RestartByQuorum, GuessesNotWhichOfTwoViewsBegan) {
  const LoggedView third = view(3, {"a", "b", "c"}, 40);
  const LoggedView one = view(4, {"a", "b"}, 60);
  const LoggedView other = view(4, {"b", "c"}, 60);
  std::vector<LogReport> reports = {report("a", {third, one}, 61), report("c", {third, other}, 61)};
  EXPECT_TRUE(contains(refusal_by_quorum(reports), "of which one never began"));
  reports[1].end = {.number = 62, .chain = 620};  // a message
  const LogChoice choice = choose_log_by_quorum(reports);
  EXPECT_TRUE(contains(choice.refusal, "no quorum of view 4 ('b', 'c')")) << choice.refusal;
  reports.push_back(report("b", {third, other}, 61));
  EXPECT_EQ(choose_log_by_quorum(reports).refusal, "");
  EXPECT_EQ(choose_log_by_quorum(reports).source, 1U);
}

TEST(RestartByQuorum, TakesTheLogOfWhoWorksBeforeALongerOneOfTheSameView) {
  const LoggedView last = view(3, {"a", "b", "c"}, 40);
  std::vector<LogReport> reports = {report("a", {last}, 70), report("b", {last}, 65),
                                    report("c", {last}, 65)};
  reports[1].live = reports[2].live = true;
  reports[1].begun = reports[2].begun = 3;
  EXPECT_EQ(choose_log_by_quorum(reports).source, 1U);
  reports = {report("a", {last, view(4, {"a"}, 66)}, 70), reports[1]};
  EXPECT_TRUE(contains(choose_log_by_quorum(reports).refusal, "start all members anew"));
}

}  // namespace
}  // namespace dunlin::multicast
