#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <unistd.h>

#include "fabric/join/options.hpp"
#include "fabric/launch/complete.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// The table of a join's options, and what is made of it.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

/// What a join says in a process with these variables: what it made, or why it did not.
std::string joined_by(const std::vector<std::pair<std::string, std::string>>& variables,
                      const JoinOptions& options) {
  Process process([&](Parent& parent) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    try {
      const auto fabric = join(options);
      parent.send_line(std::string(fabric->kind()) + ": " + fabric->description());
    } catch (const Error& error) {
      parent.send_line(error.what());
    }
    return 0;
  });
  return process.receive_line();
}

TEST(JoinOptions, HaveOneNameEachAndAreOpenUntilTheyAreGiven) {
  std::set<std::string_view> names;
  for (const JoinOption& option : join_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
    EXPECT_FALSE(option.given(JoinOptions())) << option.name;
    if (option.name == "may_serve") continue;  // its default is 1
    JoinOptions options;
    option.take(options, "1");
    EXPECT_TRUE(option.given(options)) << option.name;
  }
}

TEST(JoinOptions, AreInTheTableOfThePage) {
  std::ifstream file(DUNLIN_DEPLOY_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  ASSERT_FALSE(page.str().empty()) << DUNLIN_DEPLOY_PAGE;
  for (const JoinOption& option : join_options()) {
    const std::string row = "| `" + std::string(option.name) + "` | `" + option.variable() + "` |";
    EXPECT_TRUE(contains(page.str(), row)) << "docs/deploy.md has no row that begins " << row;
  }
}

TEST(JoinOptions, AreRefusedByANetworkThatCannotHonourThem) {
  const auto refusal = [](JoinOptions options) {
    options.group = "flock";
    options.members = 1;
    return what_is_thrown_by([&] { static_cast<void>(join(options)); });
  };
  EXPECT_EQ(refusal({.network = "shm", .encrypt = true}),
            "group 'flock': the network shm cannot honour the option `encrypt`: it does not "
            "encrypt; join over tcp or auto, or leave it out");
  EXPECT_TRUE(contains(refusal({.network = "verbs", .encrypt = true}), "does not encrypt"));
  EXPECT_TRUE(contains(refusal({.network = "ofi", .encrypt = true}), "join over tcp or auto"));
  EXPECT_TRUE(contains(refusal({.network = "tcp", .provider = "x"}), "has providers"));
  EXPECT_TRUE(contains(refusal({.network = "tcp", .access_group = "x"}), "join over shm"));
  EXPECT_TRUE(contains(refusal({.network = "shm", .device = "eth0"}), "`device`"));
  EXPECT_TRUE(contains(refusal({.network = "pigeon"}),
                       "no network 'pigeon'; there are shm, tcp, auto, verbs, ofi"));
}

TEST(JoinOptions, AreTakenFromTheEnvironmentOverSharedMemoryToo) {
  const std::string group = fresh_group();
  const std::string placed = joined_by(
      {{"DUNLIN_GROUP", group}, {"DUNLIN_MEMBERS", "1"}, {"DUNLIN_RANK", "0"}}, JoinOptions());
  EXPECT_TRUE(contains(placed, "shm: shared memory of this host; ")) << placed;
  EXPECT_TRUE(contains(placed, "rank 0 of 1 (DUNLIN_RANK, DUNLIN_MEMBERS)")) << placed;
  EXPECT_TRUE(contains(joined_by({{"DUNLIN_TIMEOUT_MS", "soon"}}, {.group = group, .members = 1}),
                       "DUNLIN_TIMEOUT_MS is 'soon': must be a whole number"));
  EXPECT_TRUE(contains(joined_by({{"DUNLIN_TIMEOUT_MS", "20"}}, {.group = group, .members = 2}),
                       "within 20 ms"));
}

TEST(JoinOptions, ChooseTheNetworkByTheEnvironmentIfTheProgramDoesNot) {
  const std::string group = fresh_group();
  EXPECT_TRUE(contains(joined_by({{"DUNLIN_NETWORK", "pigeon"}}, {.group = group, .members = 1}),
                       "no network 'pigeon'"));
  EXPECT_TRUE(contains(
      joined_by({{"DUNLIN_NETWORK", "pigeon"}}, {.network = "shm", .group = group, .members = 1}),
      "shm: "));
  const std::vector<std::pair<std::string, std::string>> unencrypted{
      {"DUNLIN_NETWORK", "ofi"},
      {"DUNLIN_ENCRYPT", "1"},
      {"DUNLIN_RENDEZVOUS", "unix:" + group},
      {"DUNLIN_SECRET", "one of sixteen bytes or more"}};
  const std::string refused = joined_by(unencrypted, {.group = group, .members = 1});
  EXPECT_TRUE(contains(refused, "`encrypt`") || contains(refused, "this build")) << refused;
}

TEST(JoinOptions, AreTakenFromAFileThatTheEnvironmentNames) {
  const std::string file = testing::TempDir() + "dunlin-config-" + std::to_string(getpid());
  const auto joined = [&](const std::string& text,
                          const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::ofstream(file) << text;
    std::vector<std::pair<std::string, std::string>> variables{{"DUNLIN_CONFIG", file}};
    variables.insert(variables.end(), more.begin(), more.end());
    return joined_by(variables, {.group = fresh_group()});
  };
  const std::string whole = "# one host\n\n network = \"shm\"\nmembers = 1\nrank=0\n";
  EXPECT_TRUE(contains(joined(whole), "rank 0 of 1 (DUNLIN_RANK, DUNLIN_MEMBERS)"));
  EXPECT_TRUE(contains(joined(whole, {{"DUNLIN_NETWORK", "pigeon"}}), "no network 'pigeon'"));
  EXPECT_TRUE(contains(joined("members 1\n"), "line 1: it is not of the form `name = value`"));
  EXPECT_TRUE(contains(joined("# \nmember = 1\n"), "line 2: there is no option `member`; there"));
  EXPECT_TRUE(contains(joined("secret = sesame\n"), "give `secret_file` instead"));
  std::filesystem::remove(file);
  EXPECT_TRUE(contains(joined_by({{"DUNLIN_CONFIG", file}}, {.group = "flock"}),
                       "(DUNLIN_CONFIG) cannot be read"));
}

TEST(JoinOptions, TakeTheSecretOfAVariableBeforeThatOfTheFile) {
  const std::string file = testing::TempDir() + "dunlin-secret-" + std::to_string(getpid());
  std::ofstream(file) << "secret_file = /dev/null/x\n";
  Process process([&](Parent& parent) {
    setenv("DUNLIN_CONFIG", file.c_str(), 1);
    setenv("DUNLIN_SECRET", "one of sixteen bytes or more", 1);
    JoinOptions options{.group = "flock", .members = 1, .rank = 0, .rendezvous = "unix:here"};
    try {
      parent.send_line(launch::complete(options, true));
    } catch (const Error& error) {
      parent.send_line(error.what());
    }
    return 0;
  });
  const std::string taken = process.receive_line();
  EXPECT_TRUE(contains(taken, "secret from DUNLIN_SECRET")) << taken;
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace dunlin
