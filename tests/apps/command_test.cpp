#include "command.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/join.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/version.hpp>

#include "cluster/cluster.hpp"
#include "group_name.hpp"
#include "output_file.hpp"
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

Status run_real(const std::vector<const char*>& words) {
  CLI::App program;
  dunlin::app::add_commands(program);
  std::vector<const char*> arguments = words;
  arguments.insert(arguments.begin(), "dunlin");
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

TEST(Command, NamesTheCommandThatIsNotThereAndThoseThatAre) {
  testing::internal::CaptureStderr();
  (void)run_real({"fly"});
  (void)run_real({"log", "bogus", "--quick"});
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "dunlin: there is no command \"fly\"; there are routing, bench, calibrate, explain, top, "
      "doctor, sim, log, multicast, topic, relay, gateway, daemon, store, kmers\n"
      "dunlin: log: there is no command \"bogus\"; there are inspect, verify, trim\n");
}

TEST(GroupName, IsNotAFunctionOfTheProcess) {
  const std::string name = dunlin::app::fresh_group("routing");
  EXPECT_NE(name, dunlin::app::fresh_group("routing"));
  EXPECT_EQ(name.rfind("routing-", 0), 0U);
  EXPECT_LE(name.size(), dunlin::kMaxGroupNameBytes);
}

TEST(Command, PrintsTheVersionOfTheLibrary) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_real({"--version"}), Status::ok);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "dunlin " + std::string(dunlin::version()) + "\n");
}

struct Refusal {
  std::vector<const char*> words;
  const char* complaint;
};

TEST(Command, RefusesOptionsThatItWouldIgnoreOrAlter) {
  const std::string folder = testing::TempDir();
  const Refusal refusals[] = {
      {{"routing", "--topology", "hub-ring:4", "--seed", "18446744073709551616"},
       "must be a whole number from 0 to 18446744073709551615"},
      {{"routing", "--topology", "hub-ring:4", "--events", "4294967297"}, "at most 10000"},
      {{"routing", "--topology", "hub-ring:4", "--json", ""}, "--json: must not be empty"},
      {{"routing", "--topology", "hub-ring:4", "--report", ""}, "--report: must not be empty"},
      {{"routing", "--topology", "hub-ring:4", "--cost", ""}, "--cost: must not be empty"},
      {{"routing", "--topology", "hub-ring:4", "--script", ""}, "--script: must not be empty"},
      {{"routing", "--topology", "hub-ring:4", "--json", "./x", "--report", "x"},
       "--json and --report: both are \"x\""},
      {{"routing", "--topology", "/proc/self/status", "--json", "/proc/self/status"},
       "--topology and --json: both are"},
      {{"routing", "--topology", "hub-ring:4", "--json", folder.c_str()}, "Is a directory"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "bogus"},
       "--fabric \"bogus\": there are shm, tcp, auto, verbs, ofi, sim"},
      {{"routing", "--topology", "hub-ring:4", "--provider", "tcp"},
       "--provider: only libfabric has providers; use it with --fabric auto or ofi, not shm"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "sim", "--hosts", "2"},
       "--hosts: only a network has several hosts"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "sim", "--join-timeout", "2"},
       "--join-timeout: nobody waits in the simulator; use it with --fabric shm or tcp or auto or "
       "verbs or ofi, not sim"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "sim", "--silence-timeout", "2"},
       "--silence-timeout: the simulator's profiles say how long that is"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--profile", "ib100"},
       "--profile: only the simulator has profiles"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--rendezvous", "unix:x"},
       "several hosts need all three"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--rendezvous", "unix:x",
        "--hosts", "2", "--host", "2"},
       "--host 2: the 2 hosts are 0 to 1"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--rendezvous", "unix:x",
        "--hosts", "257", "--host", "2"},
       "--hosts 257: 1 to 256 are possible"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--rendezvous", "unix:x",
        "--hosts", "2", "--host", "0"},
       "--secret-file is missing"},
      {{"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--rendezvous", "unix:x",
        "--hosts", "2", "--host", "0", "--secret-file", "/dev/null"},
       "the file '/dev/null' (--secret-file) is not a regular file"},
      {{"routing", "--topology", "hub-ring:4", "--silence-timeout", "nan"},
       "must be a number of seconds from 0 to 3600"},
      {{"top", "--once", "--interval", "nan"}, "must be a number of seconds"},
      {{"top", "--once", "--interval", "0.001"}, "must be a number of seconds"},
      {{"top", "--once", "--group", ""}, "must not be empty"},
  };
  for (const Refusal& refusal : refusals) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_real(refusal.words), Status::bad_input) << refusal.complaint;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(refusal.complaint), std::string::npos) << said;
  }
}

/// What a command complains of in a process with this DUNLIN_NETWORK.
std::string complaint_of(const std::vector<const char*>& words, const char* network) {
  dunlin::test::Process process([&](dunlin::test::Parent& parent) {
    setenv("DUNLIN_NETWORK", network, 1);
    dup2(parent.descriptor(), STDERR_FILENO);
    return static_cast<int>(run_real(words));
  });
  const std::string said = process.receive_all_lines();
  EXPECT_EQ(process.exit_code(), static_cast<int>(Status::bad_input));
  return said;
}

TEST(Command, TakesTheNetworkOfTheEnvironmentIfTheCommandLineNamesNone) {
  const std::vector<const char*> routing = {"routing", "--topology", "hub-ring:4"};
  EXPECT_EQ(complaint_of(routing, "bogus"),
            "dunlin: --fabric \"bogus\": there are shm, tcp, auto, verbs, ofi, sim; its default is "
            "DUNLIN_NETWORK\n");
  std::vector<const char*> named = routing;
  named.insert(named.end(), {"--fabric", "shm", "--provider", "tcp"});
  EXPECT_NE(complaint_of(named, "bogus").find("auto or ofi, not shm"), std::string::npos);
  EXPECT_NE(complaint_of({"multicast", "--group", "g", "--name", "a", "--join"}, "sim")
                .find("dunlin sim multicast"),
            std::string::npos);
}

TEST(Command, ReadsNoEnvironmentIfTheCommandLineNamesTheNetworkOrAsksForHelp) {
  for (const char* last : {"--help", "--fabric=sim"}) {
    dunlin::test::Process process([&](dunlin::test::Parent& parent) {
      setenv("DUNLIN_CONFIG", "/proc/no such file", 1);
      dup2(parent.descriptor(), STDERR_FILENO);
      dup2(parent.descriptor(), STDOUT_FILENO);
      return static_cast<int>(run_real({"routing", "--topology", "hub-ring:4", last}));
    });
    const std::string said = process.receive_all_lines();
    EXPECT_EQ(process.exit_code(), 0) << said;
  }
}

TEST(Command, ListsTheNetworksThatThereAreIfThatOneIsNot) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_real({"routing", "--topology", "hub-ring:4", "--fabric", "ofi", "--provider",
                      "carrier-pigeon"}),
            Status::bad_input);
  std::string there;
  for (const std::string& network : dunlin::devices_of("ofi")) there += "\n  " + network;
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: --fabric ofi --provider \"carrier-pigeon\": there is no such network. This "
            "host has:" +
                there + "\n");
}

TEST(Command, TakesNoUnknownNetworkForOneOfLibfabrics) {
  EXPECT_TRUE(dunlin::app::networks_of("shm").empty());
  EXPECT_THROW(static_cast<void>(dunlin::app::networks_of("pigeon")), dunlin::Error);
}

/// Some library that we link may have handlers of its own.
TEST(Command, IsEndedBySignalsAsAnyProgram) {
  dunlin::test::Process process([](dunlin::test::Parent&) {
    std::signal(SIGTERM, [](int) { _exit(1); });
    (void)run_with([] { raise(SIGTERM); });
    return 2;
  });
  EXPECT_EQ(process.exit_code(), -SIGTERM);
}

TEST(OutputFile, IsTriedWithoutATrace) {
  const std::string folder = testing::TempDir() + "dunlin-output-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string old_file = folder + "/old";
  std::ofstream(old_file) << "content";
  std::filesystem::create_symlink(folder + "/target", folder + "/link");
  for (const char* name : {"/new", "/old", "/link"}) {
    dunlin::app::demand_writable({"--json", folder + name});
  }
  dunlin::app::demand_writable({"--json", "/dev/null"});
  EXPECT_EQ(std::filesystem::file_size(old_file), 7U);
  EXPECT_FALSE(std::filesystem::exists(folder + "/new"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/target"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  std::filesystem::remove_all(folder);
}

TEST(OutputFile, IsNoOtherFileByWhateverName) {
  using dunlin::app::demand_distinct;
  const std::string file = testing::TempDir() + "dunlin-input-" + std::to_string(getpid());
  std::ofstream(file) << "content";
  std::filesystem::create_hard_link(file, file + "-too");
  EXPECT_THROW(demand_distinct({{"--json", file + "-too"}}, {{"--topology", file}}),
               dunlin::app::BadInput);
  EXPECT_NO_THROW(demand_distinct({{"--json", file}}, {{"--topology", "hub-ring:4"}}));
  EXPECT_NO_THROW(demand_distinct({{"--json", "/dev/null"}, {"--report", "/dev/null"}}, {}));
  std::filesystem::remove(file);
  std::filesystem::remove(file + "-too");
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
  EXPECT_EQ(process.receive_all_lines(), "dunlin: standard output: " + reason + "\n");
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
