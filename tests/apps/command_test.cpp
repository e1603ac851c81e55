#include "command.hpp"

#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/version.hpp>

#include "standard_output.hpp"
#include "support/process.hpp"

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

/// Runs a program whose command says a word, with standard output in the hands of `spoil`.
template <class Spoil>
void expect_that_loss_is_said(Spoil spoil, const std::vector<const char*>& arguments,
                              const std::string& reason) {
  dunlin::test::Process process([&](dunlin::test::Parent& parent) {
    CLI::App program;
    dunlin::app::add_commands(program);
    program.add_subcommand("speak")->callback([] { dunlin::app::say("word"); });
    program.add_subcommand("mutter")->callback([] { std::cout << "word"; });
    dup2(parent.descriptor(), STDERR_FILENO);
    spoil();
    return static_cast<int>(
        dunlin::app::run(program, static_cast<int>(arguments.size()), arguments.data()));
  });
  EXPECT_EQ(process.hear_all(), "dunlin: standard output: " + reason + "\n");
  EXPECT_EQ(process.exit_code(), static_cast<int>(Status::could_not_run));
}

TEST(Command, DoesNotCallItSuccessWhenItsOutputIsLost) {
  const auto full = [] { dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO); };
  const auto closed = [] { close(STDOUT_FILENO); };
  for (const char* word : {"speak", "mutter", "--version", "--help"}) {
    expect_that_loss_is_said(full, {"dunlin", word}, "No space left on device");
    expect_that_loss_is_said(closed, {"dunlin", word}, "Bad file descriptor");
  }
}

TEST(Command, LetsNoFileTakeThePlaceOfClosedOutput) {
  dunlin::test::Process process([](dunlin::test::Parent&) {
    close(STDOUT_FILENO);
    int opened = -1;
    (void)run_with([&] { opened = open("/dev/null", O_RDONLY | O_CLOEXEC); });
    return opened == STDOUT_FILENO ? 1 : 0;
  });
  EXPECT_EQ(process.exit_code(), 0);
}

}  // namespace
