#include "process/program.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <dunlin/error.hpp>

#include "support/children.hpp"
#include "support/errors.hpp"

namespace dunlin::process {
namespace {

using test::expect_no_child_left;
using test::what_is_thrown_by;

TEST(Program, ReturnsStatusAndOutput) {
  const Outcome outcome =
      run({.command = {"sh", "-c", "cat; echo oops >&2; exit 3"}, .input = "hello\n"});
  EXPECT_EQ(outcome.status.exit_code(), 3);
  EXPECT_EQ(outcome.output, "hello\noops\n");
  expect_no_child_left();
}

TEST(Program, IsEndedIfItTakesTooLong) {
  const std::string text = what_is_thrown_by([] {
    static_cast<void>(run({.command = {"sleep", "1000"}, .timeout = std::chrono::milliseconds(1)}));
  });
  EXPECT_EQ(text, "sleep did not finish within 1 ms and was ended");
  expect_no_child_left();
}

TEST(Program, ThatDoesNotExistIsAnError) {
  const std::string text =
      what_is_thrown_by([] { static_cast<void>(run({.command = {"no-such-program"}})); });
  EXPECT_EQ(text, "cannot start no-such-program: No such file or directory");
  EXPECT_FALSE(program_exists("no-such-program"));
  EXPECT_TRUE(program_exists("sh"));
  expect_no_child_left();
}

TEST(Program, BeginsAfterItsPreparation) {
  const Outcome outcome = run({.command = {"pwd"}, .prepare = [] {
                                 if (chdir("/") != 0) throw std::runtime_error("no root");
                               }});
  EXPECT_EQ(outcome.output, "/\n");
}

TEST(Program, DoesNotBeginIfItsPreparationThrows) {
  const std::string text = what_is_thrown_by([] {
    static_cast<void>(
        run({.command = {"echo", "hello"}, .prepare = [] { throw Error("no such name space"); }}));
  });
  EXPECT_EQ(text, "cannot start echo: no such name space");
}

}  // namespace
}  // namespace dunlin::process
