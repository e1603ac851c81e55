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
  EXPECT_NE(daemon.receive_line_with("member 0 of 1, for up to 256 clients"), "");
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
  EXPECT_NE(daemon.receive_line_with("ends because of SIGTERM"), "");
  EXPECT_EQ(daemon.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST(DaemonCommand, LeavesTheOthersOfItsGroup) {
  const dunlin::test::OwnDirectory directory;
  const std::string group = dunlin::test::fresh_group();
  const auto words = [&](const std::string& rank) {
    return std::vector<std::string>{"--group",
                                    group,
                                    "--members",
                                    "2",
                                    "--rank",
                                    rank,
                                    "--socket",
                                    directory / ("socket" + rank),
                                    "--silence-timeout",
                                    "0"};
  };
  DaemonProcess first(words("0"));
  DaemonProcess second(words("1"));
  EXPECT_NE(first.receive_line_with("member 0 of 2"), "");
  EXPECT_NE(second.receive_line_with("member 1 of 2"), "");
  second.signal(SIGTERM);
  EXPECT_NE(second.receive_line_with("ends because of SIGTERM"), "");
  EXPECT_EQ(second.exit_code(), 0);
  first.signal(SIGTERM);
  EXPECT_NE(first.receive_line_with("ends because of SIGTERM"), "");
  EXPECT_EQ(first.exit_code(), 0);
}

/// A member that is stopped can still write into the memory of the others, so they end its process.
TEST(DaemonCommand, SaysThatAMemberIsSuspectedRemovedAndKilled) {
  const dunlin::test::OwnDirectory directory;
  const std::string group = dunlin::test::fresh_group();
  std::vector<DaemonProcess> daemons;
  for (const std::string rank : {"0", "1", "2"})
    daemons.emplace_back(std::vector<std::string>{"--group", group, "--members", "3", "--rank",
                                                  rank, "--socket", directory / rank,
                                                  "--silence-timeout", "2"});
  for (DaemonProcess& daemon : daemons) EXPECT_NE(daemon.receive_line_with("daemon of group"), "");
  daemons[2].signal(SIGSTOP);
  const std::string suspected = daemons[0].receive_line_with("0: suspects 2: ");
  EXPECT_TRUE(contains(suspected, "no sign of life for 2000 ms")) << suspected;
  EXPECT_TRUE(contains(suspected, "--silence-timeout")) << suspected;
  EXPECT_EQ(suspected.find("20"), 0U) << "it begins with the time: " << suspected;
  const std::string removed = daemons[0].receive_line_with("0: view 2 begins without 2, ");
  EXPECT_TRUE(contains(removed, " s after it was suspected")) << removed;
  EXPECT_EQ(daemons[2].exit_code(), -SIGKILL);
  for (const std::size_t last : {1UL, 0UL}) {
    daemons[last].signal(SIGTERM);
    EXPECT_EQ(daemons[last].exit_code(), 0);
  }
  const std::string first = daemons[0].receive_all_lines();
  EXPECT_TRUE(contains(first, "0: view 3 begins without 1, which has left")) << first;
  // Either of them may have been the one that ended it.
  const std::string both = first + daemons[1].receive_all_lines();
  EXPECT_TRUE(contains(both, " has killed 2, ")) << both;
}

TEST(DaemonCommand, TakesTheSocketOfOneThatWasKilled) {
  const dunlin::test::OwnDirectory directory;
  const std::string socket = directory / "socket";
  const std::vector<std::string> words{"--group", dunlin::test::fresh_group(), "--socket", socket};
  DaemonProcess first(words);
  EXPECT_NE(first.receive_line_with("member 0"), "");
  first.kill();
  EXPECT_TRUE(std::filesystem::exists(socket));
  DaemonProcess second(words);
  EXPECT_NE(second.receive_line_with("member 0"), "");
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
