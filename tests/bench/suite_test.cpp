#include "bench/harness/suite.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/suites.hpp"
#include "command.hpp"
#include "support/errors.hpp"

namespace dunlin::bench {
namespace {

std::vector<Result> one_result(const Effort& effort) {
  Result result{.unit = "ns"};
  const std::vector<double> rounds(effort.rounds, 10.0);
  compare(result, rounds, "nothing", rounds);
  return {result};
}

std::vector<Experiment> experiments() {
  return {{.name = "a", .title = "first", .fabric = "shm", .run = one_result},
          {.name = "b", .title = "second", .fabric = "shm", .run = one_result},
          {.name = "a", .title = "third", .fabric = "sim", .run = one_result}};
}

std::string text_of(const SuiteOptions& options) {
  std::string said;
  run_suite(experiments(), options, [&](std::string_view text) { said += text; });
  return said;
}

TEST(Suite, RunsAllUnlessAskedForSome) {
  const std::vector<Experiment> all = experiments();
  EXPECT_EQ(chosen(all, {}).size(), 3U);
  EXPECT_EQ(chosen(all, {.only = {"a"}}).size(), 2U);
  EXPECT_EQ(chosen(all, {.only = {"a", "b"}, .fabric = "shm"}).size(), 2U);
  EXPECT_EQ(chosen(all, {.only = {"a"}, .fabric = "sim"}).front()->title, "third");
}

TEST(Suite, RunsWhatTakesMuchOnlyIfItIsNamed) {
  std::vector<Experiment> all = experiments();
  all[1].only_by_name = true;
  EXPECT_EQ(chosen(all, {}).size(), 2U);
  EXPECT_EQ(chosen(all, {.fabric = "shm"}).size(), 1U);
  EXPECT_EQ(chosen(all, {.only = {"a", "b"}}).size(), 3U);
  EXPECT_EQ(chosen(all, {.list = true}).size(), 3U);
}

TEST(Suite, NamesWhatThereIsWhenAskedForWhatThereIsNot) {
  try {
    (void)chosen(experiments(), {.only = {"c"}});
    FAIL() << "should have been refused";
  } catch (const app::BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("a (shm), b (shm), a (sim)"), std::string::npos);
  }
  EXPECT_THROW((void)chosen(experiments(), {.only = {"b"}, .fabric = "sim"}), app::BadInput);
}

TEST(Suite, ListsWithoutMeasuring) {
  const std::string text = text_of({.list = true});
  EXPECT_NE(text.find("second"), std::string::npos);
  EXPECT_EQ(text.find("Medians"), std::string::npos);
}

TEST(Suite, PassesTheNumberOfRoundsOn) {
  EXPECT_NE(text_of({.effort = {.rounds = 13}}).find("Medians of 13 rounds"), std::string::npos);
}

TEST(Suite, WritesTheJsonFileItIsAskedFor) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("dunlin-suite-" + std::to_string(::getpid()) + ".json");
  (void)text_of({.only = {"b"}, .json_file = file, .effort = {.rounds = 3}});
  std::ifstream stream(file);
  const auto json = nlohmann::json::parse(stream);
  std::filesystem::remove(file);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["value_spread"]["rounds"], 3);
}

TEST(Suite, RefusesWhatItCannotWriteBeforeItMeasures) {
  std::string said;
  const auto refused = [&](const SuiteOptions& options) {
    return test::what_is_thrown_by(
        [&] { run_suite(experiments(), options, [&](std::string_view text) { said += text; }); });
  };
  EXPECT_EQ(refused({.json_file = "/no/such/folder/x.json"}),
            "--json \"/no/such/folder/x.json\": cannot write it: No such file or directory");
  EXPECT_EQ(refused({.json_file = "/proc"}), "--json \"/proc\": cannot write it: Is a directory");
  EXPECT_EQ(refused({.report_file = "/proc"}),
            "--report \"/proc\": cannot write it: Is a directory");
  EXPECT_EQ(said, "");
}

TEST(Suite, RefusesAProfileThatNothingWouldUse) {
  EXPECT_THROW((void)text_of({.fabric = "shm", .effort = {.profile = "ib100"}}), app::BadInput);
  EXPECT_THROW((void)text_of({.only = {"b"}, .effort = {.profile = "ib100"}}), app::BadInput);
  EXPECT_NE(text_of({.only = {"a"}, .effort = {.profile = "ib100"}}), "");
}

/// Three results with a goal of their ratio: 1, 2, and none.
std::vector<Result> goals(const Effort&) {
  std::vector<Result> results;
  for (const double value : {10.0, 20.0, 0.0}) {
    Result result{.params = {{"value", value}}, .unit = "ns", .goal = Goal{}};
    if (value > 0) compare(result, std::vector{value}, "nothing", std::vector{10.0});
    results.push_back(result);
  }
  return results;
}

TEST(Suite, TellsGoalsThatWereMissedFromThoseThatWereNotMeasured) {
  std::string said;
  run_suite({{.name = "g", .title = "goals", .fabric = "none", .run = goals}}, {},
            [&](std::string_view text) { said += text; });
  const std::string end =
      "\n1 of 3 goals reached.\n  missed: g (value 20)\n  not measured: g (value 0)\n";
  EXPECT_TRUE(said.ends_with(end)) << said;
}

TEST(Suite, IsNamedBesideTheOthersIfTheOneThatIsAskedForIsNotThere) {
  CLI::App program;
  add_suites(program);
  const std::vector<const char*> words = {"dunlin-bench", "bogus", "--quick"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(app::run(program, static_cast<int>(words.size()), words.data()),
            app::Status::bad_input);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: there is no command \"bogus\"; there are fabric, table, multicast, topic, "
            "segment, container, store, node, routing\n");
}

TEST(Suite, SaysThatANetworkHasNoFigure) {
  CLI::App program;
  add_suites(program);
  const std::vector<const char*> words = {"dunlin-bench", "routing", "--fabric", "auto", "--list"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(app::run(program, static_cast<int>(words.size()), words.data()),
            app::Status::bad_input);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(test::contains(said, "no figure matches --only and --fabric; there are")) << said;
}

TEST(Suite, SaysNothingOfGoalsWhereThereAreNone) {
  EXPECT_EQ(text_of({}).find("goals"), std::string::npos);
}

}  // namespace
}  // namespace dunlin::bench
