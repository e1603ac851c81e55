#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/daemon.hpp>

#include "command.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"

/// `dunlin daemon`, as a process.
namespace {

using dunlin::app::Status;
using dunlin::test::contains;

Status run_daemon_command(const std::vector<std::string>& words) {
  std::vector<const char*> all{"dunlin", "daemon"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return dunlin::app::run(static_cast<int>(all.size()), all.data());
}

struct DaemonProcess : dunlin::test::Process {
  explicit DaemonProcess(const std::vector<std::string>& words)
      : Process([=](dunlin::test::Parent& parent) {
          for (const int number : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), number);
          return static_cast<int>(run_daemon_command(words));
        }) {}
};

TEST(DaemonCommand, ServesAtItsSocketUntilASignalComes) {
  const dunlin::test::OwnDirectory directory;
  const std::string socket = directory / "socket";
  DaemonProcess daemon({"--group", dunlin::test::fresh_group(), "--socket", socket});
  EXPECT_TRUE(contains(daemon.receive_line(), "member 0 of 1, for up to 256 clients"));
  EXPECT_EQ(std::filesystem::status(socket).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  {
    const auto space = dunlin::attach({.socket = socket, .timeout_ms = dunlin::test::kPatienceMs});
    const dunlin::Outcome made = space->allocate({.bytes = 8}).outcome();
    std::uint64_t value = 3;
    EXPECT_TRUE(space->put(made.key, dunlin::bytes_of(value)).outcome().ok());
    value = 0;
    EXPECT_TRUE(space->get(made.key, dunlin::bytes_of(value)).outcome().ok());
    EXPECT_EQ(value, 3U);
  }
  daemon.signal(SIGTERM);
  EXPECT_TRUE(contains(daemon.receive_line(), "ends because of SIGTERM"));
  EXPECT_EQ(daemon.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST(DaemonCommand, TakesTheSocketOfOneThatWasKilled) {
  const dunlin::test::OwnDirectory directory;
  const std::string socket = directory / "socket";
  const std::vector<std::string> words{"--group", dunlin::test::fresh_group(), "--socket", socket};
  DaemonProcess first(words);
  EXPECT_TRUE(contains(first.receive_line(), "member 0"));
  first.kill();
  EXPECT_TRUE(std::filesystem::exists(socket));
  DaemonProcess second(words);
  EXPECT_TRUE(contains(second.receive_line(), "member 0"));
  EXPECT_NO_THROW(static_cast<void>(
      dunlin::attach({.socket = socket, .timeout_ms = dunlin::test::kPatienceMs})));
}

TEST(DaemonCommand, RefusesWhatCannotBe) {
  struct BadWords {
    std::vector<std::string> words;
    std::string complaint;
  };
  const std::vector<BadWords> refusals{
      {{}, "--group"},
      {{"--group", "g", "--mode", "8"}, "must be an octal number"},
      {{"--group", "g", "--fabric", "sim"}, "serves real processes"},
      {{"--group", "g", "--clients", "-1"}, "must be a whole number"},
  };
  for (const BadWords& refusal : refusals) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_daemon_command(refusal.words), Status::bad_input) << refusal.complaint;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(contains(said, refusal.complaint)) << said;
  }
}

}  // namespace
