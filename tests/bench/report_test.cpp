#include "bench/harness/report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/harness/mpi.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

Result detection() {
  Result result{.params = {{"nodes", 2.0}, {"policy", "spin"}},
                .unit = "ns",
                .better = Better::lower,
                .goal = Goal{.bound = 1.15},
                .published = 4500.0,
                .note = "measured on a Tuesday"};
  compare(result, std::vector<double>{110, 130, 120}, "bare ping-pong",
          std::vector<double>{100, 100, 100});
  return result;
}

Experiment experiment(std::string x = "") {
  return {.name = "detection", .title = "how long", .fabric = "shm", .x = std::move(x), .run = {}};
}

TEST(Result, KnowsWhetherItsGoalIsReached) {
  Result result = detection();
  EXPECT_EQ(result.reached(), false);  // a median ratio of 1.2
  result.goal->bound = 1.25;
  EXPECT_EQ(result.reached(), true);
  result.goal = Goal{.on = Goal::On::value, .bound = 100};
  result.better = Better::higher;
  EXPECT_EQ(result.reached(), true);
  result.goal = std::nullopt;
  EXPECT_EQ(result.reached(), std::nullopt);
}

TEST(Result, DoesNotClaimAGoalThatHasNoLimitToCompareWith) {
  Result result = detection();
  result.ratio = std::nullopt;
  EXPECT_EQ(result.reached(), std::nullopt);
}

TEST(Result, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(to_text(1.239), "1.24");
  EXPECT_EQ(to_text(157.4), "157");
  EXPECT_EQ(to_text(12.34), "12.3");
  EXPECT_EQ(to_text(0.0), "0");
  EXPECT_EQ(to_text(1530, "ns"), "1.53 us");
  EXPECT_EQ(to_text(3.23e9, "ns"), "3.23 s");
  EXPECT_EQ(to_text(1.1e8, "1/s"), "110 M/s");
  EXPECT_EQ(to_text(0.5, "%"), "0.50 %");
  EXPECT_EQ(to_text(ParamValue(4096.0)), "4096");
}

TEST(JsonReport, HasOneObjectAResultWithAllThatScriptsNeed) {
  const Experiment of = experiment();
  const std::vector<Finding> findings{{&of, {detection(), detection()}}};
  const auto json = nlohmann::json::parse(json_report(findings));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["name"], "detection");
  EXPECT_EQ(json[0]["fabric"], "shm");
  EXPECT_EQ(json[0]["params"]["nodes"], 2);
  EXPECT_EQ(json[0]["params"]["policy"], "spin");
  EXPECT_EQ(json[0]["value"], 120);
  EXPECT_EQ(json[0]["unit"], "ns");
  EXPECT_EQ(json[0]["limit"], 100);
  EXPECT_EQ(json[0]["ratio"], 1.2);
  EXPECT_EQ(json[0]["goal"]["at_most"], 1.15);
  EXPECT_EQ(json[0]["goal"]["reached"], false);
  EXPECT_EQ(json[0]["published"], 4500);
  EXPECT_EQ(json[0]["value_spread"]["max"], 130);
}

TEST(JsonReport, SaysNullWhereThereIsNoLimit) {
  Result result = detection();
  result.limit = std::nullopt;
  result.ratio = std::nullopt;
  const Experiment of = experiment();
  const std::vector<Finding> findings{{&of, {result}}};
  const auto json = nlohmann::json::parse(json_report(findings));
  EXPECT_TRUE(json[0]["limit"].is_null());
  EXPECT_TRUE(json[0]["ratio"].is_null());
  EXPECT_TRUE(json[0]["goal"]["reached"].is_null());
}

TEST(TextReport, ShowsValueLimitRatioGoalAndNote) {
  const Experiment of = experiment();
  const std::string text = text_report({&of, {detection()}});
  for (const char* part :
       {"detection [shm]: how long", "120 ns", "bare ping-pong", "1.20",
        "ratio at most 1.15: MISSED", "4.50 us", "note: measured on a Tuesday"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  }
}

TEST(TextReport, LeavesOutColumnsThatAreEmpty) {
  Result result = detection();
  result.published = std::nullopt;
  const Experiment of = experiment();
  EXPECT_EQ(text_report({&of, {result}}).find("published"), std::string::npos);
}

TEST(HtmlReport, HasWhatItsScriptDraws) {
  const Experiment along = experiment("nodes"), empty = experiment();
  const std::vector<Finding> findings{{&along, {detection(), detection()}}, {&empty, {}}};
  const std::string page = html_report(findings);
  const std::size_t begins = page.find("{\"page\":\"bench\"");
  ASSERT_NE(begins, std::string::npos);
  const auto json = nlohmann::json::parse(page.substr(begins, page.find('<', begins) - begins));
  ASSERT_EQ(json["data"].size(), 1U) << "a finding without results has no chart";
  const auto& drawn = json["data"][0];
  EXPECT_EQ(drawn["title"], "how long");
  EXPECT_EQ(drawn["x"], "nodes");
  ASSERT_EQ(drawn["results"].size(), 2U);
  EXPECT_EQ(drawn["results"][0]["setting"], "nodes 2, policy spin");
  EXPECT_EQ(drawn["results"][0]["group"], "policy spin");
  EXPECT_EQ(drawn["results"][0]["text"], "120 ns");
  EXPECT_EQ(drawn["results"][0]["limit"], 100);
}

TEST(MpiCollectives, SaysThatItsProgramIsNotThere) {
  if (!process::program_exists("mpirun")) GTEST_SKIP() << "mpirun is not installed";
  const MpiCollectives mpi("/nowhere/bin");
  EXPECT_FALSE(mpi.available());
  EXPECT_NE(
      mpi.missing().find("dunlin-mpi-collectives was not found beside dunlin, in /nowhere/bin"),
      std::string::npos)
      << mpi.missing();
}

}  // namespace
}  // namespace dunlin::bench
