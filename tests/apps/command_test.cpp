#include "command.hpp"

#include <initializer_list>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/version.hpp>

namespace {

using dunlin::app::Status;

/// Runs a program whose only command does `work`.
template <class Work>
Status run_with(Work work) {
  CLI::App program;
  dunlin::app::add_commands(program);
  program.add_subcommand("work")->callback(work);
  const std::vector<const char*> arguments = {"dunlin", "work"};
  return dunlin::app::run(program, 2, arguments.data());
}

Status run_real(std::initializer_list<const char*> words) {
  CLI::App program;
  dunlin::app::add_commands(program);
  std::vector<const char*> arguments = {"dunlin"};
  arguments.insert(arguments.end(), words);
  return dunlin::app::run(program, static_cast<int>(arguments.size()), arguments.data());
}

TEST(Command, EndsWithZeroWhenTheWorkIsDone) {
  bool done = false;
  EXPECT_EQ(run_with([&] { done = true; }), Status::ok);
  EXPECT_TRUE(done);
}

TEST(Command, TellsWrongResultsFromBadInputFromAMachineThatRefuses) {
  using namespace dunlin::app;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_with([] { throw VerificationFailed("tables differ"); }), Status::failed);
  EXPECT_EQ(run_with([] { throw BadInput("a.json: no nodes"); }), Status::bad_input);
  EXPECT_EQ(run_with([] { throw dunlin::Error("no memory"); }), Status::could_not_run);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: tables differ\ndunlin: a.json: no nodes\ndunlin: no memory\n");
}

TEST(Command, RefusesWhatItDoesNotKnowAsBadInput) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_real({"fly"}), Status::bad_input);
  EXPECT_EQ(run_real({}), Status::bad_input);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
}

TEST(Command, PrintsTheVersionOfTheLibrary) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_real({"--version"}), Status::ok);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "dunlin " + std::string(dunlin::version()) + "\n");
}

}  // namespace
