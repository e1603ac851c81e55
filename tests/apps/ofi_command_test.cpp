#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/cluster.hpp"
#include "cluster/secret.hpp"
#include "command.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

namespace {

using dunlin::app::Status;
using dunlin::test::contains;

std::string scratch(const std::string& name) {
  return testing::TempDir() + "dunlin-" + name + "-" + std::to_string(getpid());
}

/// A file that nobody else may read.
void write_privately(const std::string& file, const std::string& content) {
  std::ofstream(file) << content;
  std::filesystem::permissions(
      file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

Status run_routing(std::vector<const char*> words) {
  CLI::App program;
  dunlin::app::add_commands(program);
  words.insert(words.begin(), {"dunlin", "routing", "--topology", "hub-ring:4", "--fabric", "ofi"});
  return dunlin::app::run(program, static_cast<int>(words.size()), words.data());
}

TEST(OfiCommand, SaysWhichNetworkItHasChosenAndWhy) {
  const std::string file = scratch("run.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_routing({"--events", "2", "--json", file.c_str()}), Status::ok);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(said, "\n  network: libfabric tcp on lo, address 127.0.0.1 ("));
  EXPECT_TRUE(contains(said, "All 4 routers agree with Boost.Graph"));
  const auto run = nlohmann::json::parse(std::ifstream(file)).at("runs").at(0);
  EXPECT_EQ(run["fabric"], "ofi");
  EXPECT_EQ(run["hosts"], 1);
  EXPECT_TRUE(contains(run["network"], "libfabric tcp"));
  std::filesystem::remove(file);
}

TEST(OfiCommand, RefusesMoreHostsThanRoutersAndKeepsTheSecret) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_routing({"--meeting", "unix:x", "--hosts", "5", "--host", "0", "--secret-file",
                         file.c_str()}),
            Status::bad_input);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: --hosts 5: hub-ring:4 has 4 routers, and each host needs one\n");
  std::filesystem::remove(file);
}

/// What a process with these variables takes for its place.
std::string place_by(const std::vector<std::pair<std::string, std::string>>& variables) {
  dunlin::test::Process process([&](dunlin::test::Parent& parent) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    try {
      const dunlin::app::Cluster cluster({.fabric = "ofi"});
      parent.tell(std::to_string(cluster.host()) + " of " + std::to_string(cluster.hosts()));
    } catch (const dunlin::app::BadInput& error) {
      parent.tell(error.what());
    }
    return 0;
  });
  return process.hear();
}

TEST(OfiCommand, TakesItsHostFromItsLauncher) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\n");
  EXPECT_EQ(place_by({{"DUNLIN_LAUNCHER", "dunlin"}}), "0 of 1");
  EXPECT_EQ(place_by({{"DUNLIN_MEMBERS", "3"},
                      {"DUNLIN_RANK", "2"},
                      {"DUNLIN_MEETING", "unix:x"},
                      {"DUNLIN_SECRET_FILE", file}}),
            "2 of 3");
  EXPECT_TRUE(contains(
      place_by(
          {{"DUNLIN_MEMBERS", "3"}, {"DUNLIN_MEETING", "unix:x"}, {"DUNLIN_SECRET_FILE", file}}),
      "DUNLIN_RANK is missing"));
  EXPECT_TRUE(contains(place_by({{"DUNLIN_MEMBERS", "3"}, {"DUNLIN_RANK", "3"}}),
                       "the environment contradicts itself"));
  for (const char* alone : {"DUNLIN_RANK", "DUNLIN_MEETING"}) {
    EXPECT_TRUE(contains(place_by({{alone, "0"}, {"DUNLIN_SECRET_FILE", file}}), "DUNLIN_MEMBERS"))
        << "half a place is none, and no run on this host alone";
  }
  std::filesystem::remove(file);
}

TEST(Secret, IsAFileWithoutTheLineEndBehindIt) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\r\n\n");
  EXPECT_EQ(dunlin::app::read_secret("--secret-file", file), "one of sixteen bytes or more");
  write_privately(file, "short\n");
  const std::string said =
      dunlin::test::what_is_thrown_by([&] { (void)dunlin::app::read_secret("X", file); });
  EXPECT_TRUE(contains(said, "a secret has 16 to 4096 bytes"));
  EXPECT_EQ(said.find("short"), std::string::npos) << "it is not for all to see";
  std::filesystem::remove(file);
  EXPECT_TRUE(
      contains(dunlin::test::what_is_thrown_by([&] { (void)dunlin::app::read_secret("X", file); }),
               "No such file or directory"));
}

TEST(Secret, IsAnotherOneEachTime) {
  EXPECT_NE(dunlin::app::random_secret(), dunlin::app::random_secret());
  EXPECT_EQ(dunlin::app::random_secret().size(), 64U);
}

}  // namespace
